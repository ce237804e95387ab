"""What a trial is asked, from its cell and the settings of the sweep it belongs to."""

from pathlib import Path

from harness.arguments import path_of
from harness.errors import UsageError, not_one_of
from harness.files import default_data_dir, no_folder
from harness.protocol.messages import LauncherOptions, Request
from harness.record.trial import Plant
from harness.run.launchers import launchers
from harness.spec.catalogue import Catalogue
from harness.spec.engines import each_engine, engine_for, lacking, matrix_of
from harness.spec.exclusions import must_have_fitted
from harness.spec.expand import Matrix
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of


def request_for(cell: Cell, sweep: Sweep, data_dir: Path, plant: Plant | None = None) -> Request:
    """The request of a trial of `cell`.

    One intra-op thread makes a virtual replica about one core. The inter-op pool follows the cores of the host where
    the trial runs, which need not be this one, and is resolved there (`Engine.on_host`). Raises
    UsageError for an unknown launcher, and for a network with a launcher that emulates none.
    """
    check_launcher(sweep, cell)
    return Request(
        cell=cell,
        engine=engine_for(cell, sweep),
        seed=sweep.seed,
        data_dir=str(data_dir),
        check=sweep.check,
        window_s=sweep.window,
        intra_op_threads=_intra_op_threads(cell, sweep),
        inter_op_threads=sweep.inter_op_threads,
        gpu_memory_mb=sweep.gpu_memory_mb,
        tpu=sweep.tpu,
        others_limit_s=sweep.timeout / 2,
        launcher=sweep.launcher,
        launcher_options=LauncherOptions(
            hosts=sweep.hosts,
            listen=sweep.listen,
            join_timeout_s=sweep.join_timeout,
            slurm_args=sweep.slurm_args,
            engine_python=sweep.engine_python,
        ),
        isolate=sweep.isolate,
        plant=plant,
    )


def _intra_op_threads(cell: Cell, sweep: Sweep) -> int:
    """Those of the cell. A step of a user's own, and a run from when they were a setting, has them in its spec."""
    own = cell.get("intra_op_threads")
    threads = sweep.asked("intra_op_threads")
    of_run = threads[0] if len(threads) == 1 else 0
    device = names_for(cell, sweep).devices.get(cell.shape.device)
    return int(own or of_run or (1 if device is not None and device.cores is not None else 0))


def names_for(cell: Cell, sweep: Sweep) -> Catalogue:
    """The names that the engine of a cell knows."""
    return catalogue_of(engine_for(cell, sweep))


def check_launcher(sweep: Sweep, cell: Cell | None = None) -> None:
    """UsageError for a launcher that there is not, and for one that cannot give `cell` the network it asks for."""
    known = launchers()
    if sweep.launcher not in known:
        raise not_one_of("launcher", sweep.launcher, known)
    if cell is not None and cell.shape.network and not known[sweep.launcher].emulates_networks:
        able = " or ".join(name for name, launcher in known.items() if launcher.emulates_networks)
        raise UsageError(f"network: launcher '{sweep.launcher}' emulates none; expected launcher {able}")


def asked_matrix(sweep: Sweep) -> Matrix:
    """The matrix of `sweep`. UsageError for a name that nobody knows, and when no combination is left.

    Which data sets hosts of a launcher's own have is not asked.
    """
    check_launcher(sweep)
    catalogues = {engine: catalogue_of(engine) for engine in sweep.asked("engine")}
    parts = each_engine(sweep, catalogues)
    matrix = matrix_of(parts, lacking(sweep, catalogues))
    must_have_fitted(sweep.exclude, matrix.left_out)
    beside = [] if launchers()[sweep.launcher].elsewhere else sweep.asked("data")
    for own, catalogue in parts:
        for name in own.asked("model"):
            if fault := catalogue.model_fault(name):
                raise UsageError(fault)
        for name in beside:
            unknown = name in own.asked("data") and name not in catalogue.data
            if unknown and (fault := catalogue.data_fault(name, data_dir_of(sweep))):
                raise UsageError(fault)
    return matrix


def data_dir_of(sweep: Sweep) -> Path:
    """Where the prepared data of `sweep` are kept; UsageError where they cannot be kept there, or when nobody
    knows whose home folder is meant."""
    try:
        folder = path_of("data_dir", sweep.data_dir, "a folder") if sweep.data_dir else default_data_dir()
    except RuntimeError as error:
        raise UsageError(f"data_dir: given '{sweep.data_dir}', expected a folder: {error}") from None
    if sweep.data_dir and (reason := no_folder(folder)):
        raise UsageError(f"data_dir: given '{sweep.data_dir}', expected a folder: {reason}")
    # absolute, because the process of a side of a comparison may have another working folder
    return folder.absolute()
