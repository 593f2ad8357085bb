"""Run every benchmark: python -m benchmarks [name ...]. Each script is one module with a `main()`."""

import importlib
import pkgutil
import sys

import benchmarks

NOT_A_BENCHMARK = {"__main__", "timing"}


def main() -> None:
    known = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in NOT_A_BENCHMARK]
    chosen = sys.argv[1:] or known
    for name in chosen:
        if name not in known:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(known)}")
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
