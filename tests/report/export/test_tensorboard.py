"""The log folder, read by TensorBoard's own event reader and its HParams plugin."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.context import RequestContext
from tensorboard.data import provider
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups

from harness.errors import HarnessError
from harness.report.export import exporters
from tests.report.export.runs import ROOT, synthetic


@pytest.fixture(scope="module")
def run() -> SimpleNamespace:
    return synthetic(blocks=2)


@pytest.fixture(scope="module")
def logs(run: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    exporters()["tensorboard"].export(run, folder)
    return folder


@pytest.mark.usefixtures("tf")  # TensorBoard imports it
def test_every_trial_is_a_run_with_a_scalar_a_window(run: SimpleNamespace, logs: Path) -> None:
    folders = [file.parent for file in logs.rglob("block-*/events*")]
    assert len(folders) == len(run.trials)
    trial = next(trial for trial in run.trials if trial.status == "ok" and trial.cell.strategy == "none")
    folder = logs / "mnist_cnn-on-digits-virtual-cpu-none-x1-b32" / f"block-{trial.block}"
    read = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()
    steps = read.Tensors("windows/step_time_s")
    assert [event.step for event in steps] == list(range(len(trial.windows.seconds)))
    first = trial.windows.seconds[0] / trial.windows.steps_per_window
    assert steps[0].tensor_proto.float_val[0] == pytest.approx(first, rel=1e-6)
    [throughput] = read.Tensors("throughput_examples_per_s")
    assert throughput.tensor_proto.float_val[0] == pytest.approx(trial.throughput_examples_per_s, rel=1e-6)


def context(logs: Path) -> tuple[backend_context.Context, RequestContext, str]:
    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(logs))
    multiplexer.Reload()
    source: provider.DataProvider = data_provider.MultiplexerDataProvider(multiplexer, str(logs))
    return backend_context.Context(SimpleNamespace(data_provider=source)), RequestContext(), ""


@pytest.mark.usefixtures("tf")  # TensorBoard imports it
def test_the_hparams_plugin_groups_the_trials_of_a_cell_and_has_every_key(run: SimpleNamespace, logs: Path) -> None:
    plugin, request, experiment_id = context(logs)
    metadata = plugin.hparams_metadata(request, experiment_id)
    experiment = get_experiment.Handler(request, plugin, experiment_id, api_pb2.GetExperimentRequest()).run()
    assert {"strategy", "replicas", "batch_size"} <= {info.name for info in experiment.hparam_infos}
    assert metadata
    asked = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=1000,
        aggregation_type=api_pb2.AGGREGATION_AVG,
        allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE],
        col_params=[api_pb2.ColParams(metric=api_pb2.MetricName(tag="throughput_examples_per_s"))],
    )
    groups = list_session_groups.Handler(request, plugin, experiment_id, asked).run().session_groups
    assert len(groups) == len({trial.cell_id for trial in run.trials})
    means = [
        value.value
        for group in groups
        for value in group.metric_values
        if value.name.tag == asked.col_params[0].metric.tag
    ]
    by_cell: dict[str, list[float]] = {}
    for trial in run.trials:
        if trial.throughput_examples_per_s is not None:
            by_cell.setdefault(trial.cell_id, []).append(trial.throughput_examples_per_s)
    expected = sorted(sum(values) / len(values) for values in by_cell.values())
    assert sorted(means) == pytest.approx(expected, rel=1e-5)


def test_tensorflow_is_not_imported_to_write_it(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from harness import cli\n"
        "command = ['export', 'results/reference', '--format', 'tensorboard', '--output']\n"
        f"assert cli.run([*command, {str(tmp_path)!r}]) == 0\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("events*"))


def test_without_the_package_the_error_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(HarnessError, match="pip install tensorboard"):
        exporters()["tensorboard"].export(synthetic(blocks=1), tmp_path)
