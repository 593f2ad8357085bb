"""What a training changed that went on from another model: scores, labels and words on held-out texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rationalizer.cli.base import out, show_table, warn

if TYPE_CHECKING:
    from rationalizer.data import Corpus
    from rationalizer.drawing import AnyExplanation
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample

WORDS = 12  # listed as gained, and as lost
DRAWN = 6  # texts, those whose rationale changed most
PAGE = "change.html"


def show_change(before: TrainedModel, after: TrainedModel, corpus: Corpus, start: Path, folder: Path) -> None:
    """Print the change on held-out texts, and write it as a page into the folder of the run."""
    from rationalizer.data.annotation_file import text_id
    from rationalizer.drawing.html import HtmlTable, Section, to_html_page
    from rationalizer.inference import evaluate, predict
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.model import Rationalizer
    from rationalizer.models.atomic_files import write_bytes

    known = _texts_of_training(start)
    held_out = list(corpus.test or corpus.dev)
    if known is None:
        warn([f"note: the training data of {start} cannot be read; it may have contained some of the held-out texts"])
    else:
        held_out = [one for one in held_out if text_id([part.text for part in one.texts]) not in known]
    if not held_out:
        warn([f"note: all held-out texts were in the training of {start}; a test file would show what changed"])
        return
    scores, explained = {}, []
    for name, trained in (("before", before), ("after", after)):
        predictions = predict(trained, held_out)
        scores[name] = evaluate(trained, held_out, predictions=predictions).replace(seconds_per_epoch=None)
        explained.append(Rationalizer.from_trained(trained).explain_examples(held_out, predictions=predictions))
    heads, rows = [f"{len(held_out)} held-out texts", *scores], score_rows(scores, headline_metrics())
    show_table(heads, rows)
    gained, lost = words_moved(*explained)
    facts = [f"Other labels: {sum(a.label != b.label for a, b in zip(*explained, strict=True))} texts"]
    for title, words in (("Now selected", gained), ("No longer selected", lost)):
        facts.append(f"{title} (texts): {', '.join(f'{word} {count}' for word, count in words[:WORDS]) or 'no words'}")
    for fact in facts:
        out.print(fact, markup=False)
    changed = sorted(range(len(held_out)), key=lambda k: -_distance(explained[0][k], explained[1][k]))[:DRAWN]
    model = Rationalizer.from_trained(after)
    sections = [Section(text="\n\n".join(facts), tables=[HtmlTable(heads, rows)])]
    for k in changed:
        truth = model.label_of(held_out[k])
        pair = [explained[0][k], explained[1][k]]
        sections.append(Section(explanations=pair, truths=[truth] * 2, captions=["before", "after"]))
    page = to_html_page(title=f"{folder.name}: what changed", sections=sections)
    write_bytes(folder / PAGE, page.encode("utf-8", "replace"))
    out.print(f"Before and after, text by text: {folder / PAGE}", markup=False)


def words_moved(
    before: Sequence[AnyExplanation], after: Sequence[AnyExplanation]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The words selected in more texts than before, and in fewer, each with the difference, largest first."""
    change: Counter[str] = Counter()
    for explanations, sign in ((before, -1), (after, 1)):
        for explanation in explanations:
            for word in _words(explanation):
                change[word] += sign
    moved = sorted(
        ((word, count) for word, count in change.items() if count), key=lambda item: (-abs(item[1]), item[0])
    )
    return [item for item in moved if item[1] > 0], [(word, -count) for word, count in moved if count < 0]


def _words(explanation: AnyExplanation) -> set[str]:
    from rationalizer.drawing.dataset_overview import selected_units, unit_text

    return {unit_text(unit) for unit in selected_units(explanation)}


def _distance(before: AnyExplanation, after: AnyExplanation) -> float:
    one, other = _words(before), _words(after)
    return len(one ^ other) / max(1, len(one | other)) + (before.label != after.label)


def _texts_of_training(start: Path) -> set[str] | None:
    """The ids of the texts that a model was trained on; None if they are not known."""
    from rationalizer.data.annotation_file import text_id
    from rationalizer.training import read_source

    try:
        source = read_source(start)
        train: Sequence[AnyExample] | None = None if source is None else source.load().train
    except (ValueError, OSError, ImportError):
        return None
    return None if train is None else {text_id([part.text for part in example.texts]) for example in train}
