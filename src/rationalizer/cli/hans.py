"""`rationalizer hans`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rationalizer.cli.base import command, out, show_table, use_threads
from rationalizer.cli.options import DataDir, Device, Encoder, Precision, Setting, Threads, Vectors, collect_settings


@command(
    "rationalizer hans snli --data-dir data/snli --hans-dir data/hans --out runs/hans",
    "rationalizer hans mnli --method budget --set faithful=false",
    "rationalizer hans runs/snli-at-most-one --hans-dir data/hans",
)
def hans(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="Training data: mnli, snli or your own pairs; or the folder of a trained model."
        ),
    ],
    hans_dir: Annotated[
        Path | None, typer.Option(help="A folder with a local copy of HANS; by default it is downloaded from the Hub.")
    ] = None,
    method: Annotated[str, typer.Option(help="The alignment method.")] = "at-most-one",
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of both runs and the table.")] = Path("runs/hans"),
    data_dir: DataDir = None,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Setting = None,
    note: Annotated[
        str | None,
        typer.Option(help="A remark on the data for the table, such as rebuilt; by default from its folder or size."),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    precision: Precision = None,
) -> None:
    """Test whether a model relies on word overlap (HANS).

    Train on SOURCE (vanilla) and on SOURCE plus the training pairs of HANS (augmented), and score both on the six
    parts of the HANS evaluation set. Finished runs of an earlier call are reused. A trained model is only scored.
    """
    use_threads(threads)
    from rationalizer.compare import describe_method
    from rationalizer.data import DataSource, load
    from rationalizer.models import TrainedModel, configure
    from rationalizer.models.atomic_files import write_bytes, write_json
    from rationalizer.paper.hans_evaluation import hans_accuracy, hans_json, hans_markdown, hans_table
    from rationalizer.training import read_source, run

    if (Path(source) / "model.safetensors").is_file():
        trained = TrainedModel.load(source, device)
        accuracy = hans_accuracy(trained, load("hans", data_dir=hans_dir, rule=trained.encoder.rule))
        data = read_source(Path(source))
        name = f"{trained.config.method}{'' if data is None else f', trained on {data.name}'}"
        show_table(*hans_table({name: accuracy}), title="Accuracy on HANS")
        return
    vanilla = DataSource.resolve(source, data_dir)
    augmented = replace(vanilla, hans="" if hans_dir is None else str(hans_dir.absolute()))
    chosen = {"budget": vanilla.budget, **collect_settings(settings, encoder=encoder, embeddings=embeddings)}
    config = configure(method, chosen, dataset=vanilla.dataset, pairs=True)
    evaluation = load("hans", data_dir=hans_dir, rule=config.word_splitting)
    # Load both before any training, so that data that cannot be augmented fails at once.
    sources = {"vanilla": vanilla, "augmented": augmented}
    corpora = {name: data.load(config.word_splitting) for name, data in sources.items()}
    note = vanilla.note(config.word_splitting) if note is None else note
    columns = {}
    placing: dict[str, Any] = {"precision": precision, "device": device}
    for name, corpus in corpora.items():
        folder = out_dir / name
        out.print(f"{name}: {len(corpus.train)} training pairs, {describe_method(config)}: {folder}")
        result = run(corpus, config, folder, source=sources[name], resume=True, threads=threads, **placing)
        columns[name] = hans_accuracy(result.trained, evaluation)
    show_table(*hans_table(columns), title="Accuracy on HANS")
    about = (
        f"Accuracy of {describe_method(config)}, trained on {vanilla.name}{f' ({note})' if note else ''}, without "
        "and with the training pairs of HANS. The paper's figures are for M:AtMostOne2 trained on all of MNLI."
    )
    write_bytes(out_dir / "hans.md", hans_markdown(columns, about).encode())
    write_json(out_dir / "hans.json", hans_json(columns))
    out.print(f"Written: {out_dir / 'hans.md'}, {out_dir / 'hans.json'}")
