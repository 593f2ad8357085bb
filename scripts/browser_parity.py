"""Whether models on a static page give the same answers in a browser as in Python, and how fast they are.

    python scripts/export_parity.py --texts 2000 --write cases.json
    python scripts/browser_parity.py cases.json
    python scripts/browser_parity.py            # only the speed, on 1,000 texts of 6 to 30 words and as many pairs

Needs Playwright and Chromium. Printed are the cases in which the selected words or the label differ, the largest
difference of a probability, the bytes and the time until a model is loaded, the time of the first and of the median
explanation, and the memory of the page's process.
"""

from __future__ import annotations

import argparse
import json
import runpy
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from rationalizer.export.web_site import export_site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Answer the cases in the page's worker, one after the other; as in `export_parity.py`, with the milliseconds of each.
ANSWER = """async (cases) => {
  const { models, shared } = await (await fetch("site.json")).json();
  const worker = new Worker("worker.js", { type: "module" });
  let calls = 0;
  const ask = (call, message) => new Promise((resolve) => {
    const id = ++calls;
    const listener = ({ data }) => {
      if (data.id !== id || data.loaded !== undefined) return;
      worker.removeEventListener("message", listener);
      resolve(data);
    };
    worker.addEventListener("message", listener);
    worker.postMessage({ id, call, ...message });
  });
  const timed = async (call, message) => {
    const started = performance.now();
    return { ...(await ask(call, message)), ms: performance.now() - started };
  };
  const loads = {};
  const answers = [];
  for (const { model, texts, budget, constraints } of cases) {
    if (!(model in loads)) {
      const facts = models.find(({ name }) => name === model);
      const { ms, problem } = await timed("load", { facts, shared });
      if (problem) throw new Error(problem);
      loads[model] = { ms, bytes: Object.values(facts.files).reduce((sum, { bytes }) => sum + bytes, 0) };
    }
    const request = { texts, budget, constraints };
    const { answer, problem, isUserError, ms } = await timed("explain", { name: model, request });
    if (problem && !isUserError) throw new Error(`${JSON.stringify(texts)}: ${problem}`);
    answers.push(problem ? { error: problem, ms } : {
      tokens: answer.texts.map(({ tokens }) => tokens),
      selected: answer.pairs ?? [...answer.selected.keys()].filter((k) => answer.selected[k]),
      label: answer.label,
      probabilities: (answer.probabilities ?? []).map(([, share]) => share),
      ms,
    });
  }
  return { loads, answers };
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *message: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the files of a folder as `python -m http.server` does; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def difference(expected: dict[str, Any], actual: dict[str, Any]) -> float | None:
    """Return the largest difference of a probability; None if anything else differs but the words of an error."""
    if "error" in expected or "error" in actual:
        return 0.0 if "error" in expected and "error" in actual else None
    if any(expected[key] != actual[key] for key in ("tokens", "selected", "label")):
        return None
    return float(np.abs(np.subtract(expected["probabilities"], actual["probabilities"])).max(initial=0.0))


def _memory(browser: Any) -> int:
    """The resident bytes of the largest process that runs a page."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = [0]
    for process in processes:
        if process["type"] == "renderer":
            status = Path(f"/proc/{process['id']}/status").read_text(encoding="utf-8")
            sizes.append(1024 * int(status.split("VmRSS:")[1].split()[0]))
    return max(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="?", help="a file written by export_parity.py")
    parser.add_argument("--site", type=Path, help="an exported page; by default one is made of the models in the cases")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    if options.cases is None:
        make_texts = runpy.run_path(str(Path(__file__).with_name("export_speed.py")))["make_texts"]
        texts = {"sentiment": [[text] for text in make_texts(1000, pairs=False)], "nli": make_texts(1000, pairs=True)}
        cases = [{"model": name, "texts": list(own)} for name, several in texts.items() for own in several]
    else:
        cases = json.loads(options.cases.read_text(encoding="utf-8"))["cases"]
    with tempfile.TemporaryDirectory() as folder:
        names = dict.fromkeys(case["model"] for case in cases)
        site = options.site or export_site(list(names), Path(folder))
        with serving(site) as address, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(f"{address}style.css")  # nothing but the worker computes
            found = page.evaluate(ANSWER, cases)
            memory = _memory(browser)
            browser.close()
    largest, differing = 0.0, 0
    for number, (case, actual) in enumerate(zip(cases, found["answers"], strict=True)):
        off = difference(case.get("expected", actual), actual)
        if off is None:
            differing += 1
            print(f"case {number} differs: {case} got {actual}")
        largest = max(largest, off or 0.0)
    if options.cases is not None:
        print(f"{len(cases)} cases, {differing} differ, largest difference of a probability {largest:.1e}")
    for name, load in found["loads"].items():
        times = [one["ms"] for case, one in zip(cases, found["answers"], strict=True) if case["model"] == name]
        rate = 1000 * len(times) / sum(times)
        print(
            f"{name}: {load['bytes'] / 1e6:.1f} MB loaded in {load['ms']:.0f} ms; first explanation {times[0]:.0f} ms, "
            f"median {statistics.median(times):.1f} ms, 99% {np.quantile(times, 0.99):.0f} ms, {rate:.0f} texts/s"
        )
    print(f"memory of the page's process: {memory / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
