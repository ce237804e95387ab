"""What a run of input pipelines comes to: of each model, at which rate its input would be the limit."""

from collections.abc import Iterator

from harness.analysis import Interval, RunSummary, WorkloadSummary
from harness.analysis.pipelines import FedBy, FedModel, InputLimit, fed_models
from harness.report.words.caveats import cached_words, is_virtual
from harness.report.words.text import listed, plus_minus, ratio, sentence, significant
from harness.spec.pipeline import AppetiteCell
from harness.visible import plural, printable

IS_LIMIT = "input is the limit"
"""The head of the column that says whether it is."""
LIMITS = {"later": "no", "now": "yes", "undecided": "undecided"}
"""Whether input is the limit, in a word."""


def pipeline_lines(summary: RunSummary) -> tuple[str, ...]:
    """Of each model what it takes, what its fastest input gives, and what the others come to."""
    return tuple(printable(line) for work in summary.workloads for line in lines_of(work))


def lines_of(work: WorkloadSummary) -> Iterator[str]:
    """The same of one ranking; nothing where no ranked input was measured beside what its model takes."""
    models = fed_models(work) if ranked_models(work) else ()
    for number, model in enumerate(models):
        yield beside_words(model)
        if not number:
            yield from cached_words(work)
        if others := others_words(model):
            yield others
    if models and is_virtual(work):
        yield (
            "Both were measured alone. In a training on the processor the two share its cores: what the input needs to "
            "feed the model is the step's loss."
        )


def ranked_models(work: WorkloadSummary) -> tuple[FedModel, ...]:
    """The models of which an input is ranked, which alone is an answer."""
    return tuple(model for model in fed_models(work) if model.ranked)


def beside_words(model: FedModel) -> str:
    """`mnist_cnn at batch 128 takes 11,000 examples/s …; its input b128 gives 25,000: input is the limit at 2.3× [2.2 –
    2.4] the current rate.`"""
    unit, count = model.cell.work.quantity.unit, len(model.inputs)
    name, rate = name_of(model.cell), significant(model.appetite.value)
    takes = f"{name} takes {rate} {unit} from batches that wait on its device"
    if not model.ranked:
        return f"{takes}; of {plural(count, 'input')} none could be proved."
    fed = model.fastest
    label = fed.summary.label
    which = f"its fastest, {label}," if count > 1 else f"its {label}"
    if count > len(model.ranked) == 1:
        which = f"its only input that could be proved, {label},"
    return f"{takes}; {which} gives {significant(fed.rate.value)}: {limit_words(fed)}."


def name_of(cell: AppetiteCell) -> str:
    """`mnist_cnn at batch 64`, with the threads where they were chosen."""
    threads = f" with {plural(cell.intra_op_threads, 'thread')}" if cell.intra_op_threads else ""
    return f"{cell.model} at batch {cell.batch_size}{threads}"


def limit_words(fed: FedBy) -> str:
    """At which rate of the model its input is the limit."""
    return limit_of_rate(fed.limit, fed.headroom)


def limit_of_rate(limit: InputLimit, headroom: Interval) -> str:
    """The same of an input's rate ÷ what the model takes."""
    size = ratio(headroom)
    match limit:
        case "later":
            return f"input is the limit at {size} the current rate"
        case "now":
            return f"input is the limit now, at {size} what the model takes"
        case "undecided":
            return f"these trials cannot tell whether input is the limit, {size} what the model takes"
        case "cannot_know":
            return f"{size} what the model takes; one trial cannot tell whether input is the limit: use more --trials"
        case _:
            return f"{size} what the model takes so far"


def others_words(model: FedModel) -> str:
    """How many of several ranked inputs are the limit, and which; empty of one, and where nothing is judged."""
    if len(model.ranked) < 2 or model.fastest.limit == "not_judged":
        return ""
    count = f"{len(model.ranked)}{'' if model.ranked == model.inputs else ' ranked'} inputs"
    counted = {limit: [one.summary.label for one in model.ranked if one.limit == limit] for limit in LIMITS}
    if len(counted["later"]) == len(model.ranked):
        return f"None of its {count} is the limit."
    words = {"later": "not the limit", "now": "the limit now", "undecided": "undecided"}
    told = [
        f"{len(labels)} {words[limit]}" + (f" ({listed(labels)})" if limit != "later" else "")
        for limit, labels in counted.items()
        if labels
    ]
    return f"Of its {count}: {', '.join(told)}." if told else ""


def headline_of(models: tuple[FedModel, ...]) -> str:
    """Of the model whose input leaves it the least room."""
    model = tightest(models)
    return f"{sentence(limit_words(model.fastest))}: {name_of(model.cell)}, {model.fastest.summary.label}."


def model_figures(models: tuple[FedModel, ...]) -> Iterator[tuple[str, str, str]]:
    """What is set large of the model whose input leaves it the least room: (name, value, certainty)."""
    model = tightest(models)
    fed, unit = model.fastest, model.cell.work.quantity.unit
    yield f"{unit}, what {name_of(model.cell)} takes", *_value(model.appetite)
    yield f"{unit}, {fed.summary.label}", *_value(fed.rate)
    yield "input over what the model takes", f"{significant(fed.headroom.value)}×", plus_minus(fed.headroom)


def tightest(models: tuple[FedModel, ...]) -> FedModel:
    """The model whose fastest input leaves it the least room."""
    return min(models, key=lambda model: model.fastest.headroom.value)


def _value(interval: Interval) -> tuple[str, str]:
    return significant(interval.value), plus_minus(interval)
