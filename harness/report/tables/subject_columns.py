"""The columns of what only some runs have: parts of a step, collectives, pipelines, and distances from limits."""

from harness.report.tables.column import INTERVAL_NOW, Column, interval_columns

_RUN = Column("run_id", "category", "", "the run")
_CELL = Column("cell_id", "category", "", "identity of the cell")
_CELL_OF_SIDE = (_RUN, Column("side", "category", "", "a or b of a run of ab"), _CELL)
_INPUT_OVER_MODEL = (
    *interval_columns(
        "input_over_model", "×", "what the input gives ÷ what the model takes; below 1 input is the limit"
    ),
    Column(
        "input_is_the_limit",
        "category",
        "",
        "yes, no or undecided; empty where it is not known, or not yet",
    ),
)

PART_COLUMNS: tuple[Column, ...] = (
    _RUN,
    _CELL,
    Column("cell", "category", "", "what tells it from the other cells of its run"),
    Column("bound_by", "category", "", "the part that binds the step, or mixed, undecided, not_judged"),
    Column("step_time_s", "number", "s", "the whole step, geometric mean over blocks"),
    Column("part", "category", "", "input, communication, …; what they are made of says the protocol"),
    Column("seconds", "number", "s", "the share of the whole step's time"),
    *interval_columns("share", "share", "of the step, the mean over blocks"),
    Column("most_gain", "number", "", "how many times as fast without it, at most; of parts that may bind a step"),
    Column("lacks", "text", "", "of a part that could not be told, which has no share: the arms that gave nothing"),
    Column("advice", "text", "", "of a part that binds the step: what to try"),
    Column("trials_needed", "count", "", "of an undecided step: about how many trials would tell"),
    *_INPUT_OVER_MODEL,
)
"""One row a part of a step: `harness.load_parts`."""

COLLECTIVE_COLUMNS: tuple[Column, ...] = (
    *_CELL_OF_SIDE,
    Column("collective", "category", "", "all_reduce, reduce_scatter, all_gather or broadcast"),
    Column("between", "category", "", "who takes part, and over what"),
    Column("op", "category", "", "what carries it out"),
    Column("size_bytes", "count", "bytes", "of the buffer, as nccl-tests counts it"),
    Column("gradients", "category", "", "the model whose gradients are sent; empty of one buffer"),
    Column("status", "category", "", "ok, unproved, or why there is no time"),
    *interval_columns("time_s", "s", "one collective", which=INTERVAL_NOW),
    *interval_columns("algbw_bytes_per_s", "bytes/s", "size ÷ time", which=INTERVAL_NOW),
    *interval_columns("busbw_bytes_per_s", "bytes/s", "algbw × the collective's constant", which=INTERVAL_NOW),
    Column("line_s", "number", "s", "what the line α + S/β says of the size; empty of one that is on no line"),
    Column("piece", "count", "", "the range of sizes whose line that is, from 1"),
    *interval_columns("alpha_s", "s", "α of that line"),
    *interval_columns("seconds_a_byte", "s/byte", "1/β of that line"),
    Column("busbw_limit_bytes_per_s", "number", "bytes/s", "what the network, memory, TCP or a GPU's copies can carry"),
)
"""One row a collective of a size: `export --format collectives`, and `harness.load_collectives`."""
PIPELINE_COLUMNS: tuple[Column, ...] = (
    *_CELL_OF_SIDE,
    Column("cell", "category", "", "the pipeline's short name, also of a row that is a part of it"),
    Column("up_to", "category", "", "the stage that it is cut off behind; empty is all of it"),
    Column("feeds", "category", "", "the model, and its batch"),
    Column("status", "category", "", "ok, unproved, or why there is no rate"),
    Column("unit", "category", "", "of rates, such as examples/s"),
    *interval_columns("input_per_s", "1/s", "what it gives by itself", which=INTERVAL_NOW),
    Column("cpu_seconds_each", "number", "s", "processor time of one, of all stages up to there"),
    *interval_columns(
        "model_takes_per_s", "1/s", "the model's own rate on batches that wait on its device", which=INTERVAL_NOW
    ),
    *_INPUT_OVER_MODEL,
    Column("processors_to_feed_it", "number", "", "those that it uses at the model's rate"),
)
"""One row a pipeline, and one a stage that it is cut off behind: `export --format pipelines`, and
`harness.load_pipelines`."""
RATE_COLUMNS: tuple[Column, ...] = (
    *_CELL_OF_SIDE,
    Column("cell", "category", "", "the cell's short name"),
    Column("flops_per_step", "count", "FLOP", "products and convolutions of a step"),
    Column("bytes_per_step", "count", "bytes", "what they read and write, each once"),
    Column("flop_per_byte", "number", "FLOP/byte", "their arithmetic intensity"),
    *interval_columns("flop_per_s", "FLOP/s", "their operations ÷ what the step takes", which=INTERVAL_NOW),
    *interval_columns("share_of_limit", "share", "of the processors' matrix products; on GPUs MFU", which=INTERVAL_NOW),
    Column("limit_on", "category", "", "the processors that the cell keeps busy"),
    Column("limit_type", "category", "", "the numbers that they multiply; `tf32` is float32 in fewer bits"),
    Column("limit_flop_per_s", "number", "FLOP/s", "matrix products at most"),
    Column("limit_bytes_per_s", "number", "bytes/s", "memory at most"),
    Column("roof_flop_per_s", "number", "FLOP/s", "the lower of both limits at the cell's intensity"),
)
"""One row a cell whose operations were counted: `export --format limits`, and `harness.load_limits`."""
