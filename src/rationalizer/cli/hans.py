"""`rationalizer hans`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rationalizer.cli.base import command, out, show_table
from rationalizer.cli.options import DataDir, Device, Encoder, Precision, Setting, Vectors, collect_settings


@command(
    "rationalizer hans snli --data-dir data/snli --hans-dir data/hans --out runs/hans",
    "rationalizer hans mnli --method budget --set faithful=false",
    "rationalizer hans runs/snli-at-most-one --hans-dir data/hans",
)
def hans(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="What to train on: mnli, snli, own pairs; or a trained model's folder."),
    ],
    hans_dir: Annotated[Path | None, typer.Option(help="A local copy of HANS; without it the Hub is asked.")] = None,
    method: Annotated[str, typer.Option(help="The alignment layer.")] = "at-most-one",
    out_dir: Annotated[Path, typer.Option("--out", help="Where to keep both runs and the table.")] = Path("runs/hans"),
    data_dir: DataDir = None,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Setting = None,
    note: Annotated[
        str | None, typer.Option(help="What the data is, as rebuilt; by default what its folder or its size says.")
    ] = None,
    device: Device = "auto",
    precision: Precision = None,
) -> None:
    """Does a model go by word overlap? Train on SOURCE (vanilla) and on SOURCE with HANS' training pairs
    (augmented), and score both on the six parts of HANS' evaluation set. Goes on where an earlier call stopped.
    The folder of a trained model is scored alone.
    """
    from rationalizer.compare import describe_method
    from rationalizer.data import DataSource, load
    from rationalizer.models import TrainedModel, configure
    from rationalizer.models.atomic_files import write_bytes, write_json
    from rationalizer.models.devices import accelerator_settings, check_device
    from rationalizer.paper.hans import hans_accuracy, hans_json, hans_markdown, hans_table
    from rationalizer.training import read_source, run

    if (Path(source) / "model.safetensors").is_file():
        trained = TrainedModel.load(source, check_device(device))
        accuracy = hans_accuracy(trained, load("hans", data_dir=hans_dir, rule=trained.encoder.rule))
        where = read_source(Path(source))
        name = f"{trained.config.method}{'' if where is None else f', trained on {where.name}'}"
        show_table(*hans_table({name: accuracy}), title="Accuracy on HANS")
        return
    on = accelerator_settings(device)
    vanilla = DataSource.resolve(source, data_dir)
    augmented = replace(vanilla, hans="" if hans_dir is None else str(hans_dir.absolute()))
    given = {"budget": vanilla.budget, **collect_settings(settings, encoder=encoder, embeddings=embeddings)}
    config = configure(method, given, dataset=vanilla.dataset, pairs=True)
    evaluation = load("hans", data_dir=hans_dir, rule=config.word_splitting)
    # Both before any training: data that cannot be augmented are refused at once.
    parts = {
        "vanilla": (vanilla, vanilla.load(config.word_splitting)),
        "augmented": (augmented, augmented.load(config.word_splitting)),
    }
    note = vanilla.note(config.word_splitting) if note is None else note
    columns = {}
    for name, (where, corpus) in parts.items():
        out.print(f"{name}: {len(corpus.train)} training pairs, {describe_method(config)}: {out_dir / name}")
        done = run(corpus, config, out_dir / name, source=where, resume=True, precision=precision, **on)
        columns[name] = hans_accuracy(done.trained, evaluation)
    show_table(*hans_table(columns), title="Accuracy on HANS")
    about = (
        f"Accuracy of {describe_method(config)}, trained on {vanilla.name}{f' ({note})' if note else ''}, without "
        "and with the training pairs of HANS. The paper's figures are of M:AtMostOne2 trained on the whole of MNLI."
    )
    write_bytes(out_dir / "hans.md", hans_markdown(columns, about).encode())
    write_json(out_dir / "hans.json", hans_json(columns))
    out.print(f"written: {out_dir / 'hans.md'}, {out_dir / 'hans.json'}")
