"""Before anything is recorded: a user's own model and op that cannot be loaded are bad usage."""

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.protocol.messages import Report, Request
from harness.run.process.preflight import preflight
from tests.record.examples import cell
from tests.run.fakes import Actor, FakeZygote, Play

TRACEBACK = """Traceback (most recent call last):
  File "x.py", line 3, in model
    keras.Danse(10)
AttributeError: module 'keras' has no attribute 'Danse'
"""


def requests(*changes: dict[str, object]) -> list[Request]:
    return [
        Request(cell=cell(**change), seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=4)
        for change in changes
    ]


def run(folder: Path, play: Play, *changes: dict[str, object]) -> FakeZygote:
    zygote = FakeZygote(folder, lambda _: play)
    preflight(zygote, requests(*(changes or ({"model": "my.models:net"},))), limit_s=0.3)  # type: ignore[arg-type]
    return zygote


def test_registered_names_need_no_look(tmp_path: Path) -> None:
    assert run(tmp_path, Play(), {}, {"replicas": 3}).spawned == []


def test_each_of_the_users_own_is_looked_at_once(tmp_path: Path) -> None:
    own, op = {"model": "my.models:net"}, {"cross_device_op": "my.ops:ring"}
    zygote = run(tmp_path, Play(), own, {**own, "replicas": 3}, op, {})
    assert [(r.task, r.cell.model, r.cell.cross_device_op) for r in zygote.spawned] == [
        ("preflight", "my.models:net", "auto"),
        ("preflight", "mnist_cnn", "my.ops:ring"),
    ]


def test_one_that_cannot_be_loaded_is_bad_usage_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot import 'my'"):
        run(tmp_path, Play(happens=lambda actor: actor.say("crashed", "model: 'my.models:net': cannot import 'my'")))


def test_one_that_raises_is_bad_usage_with_what_it_raised(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(tmp_path, Play(happens=raises))
    assert str(caught.value) == (
        "model: 'my.models:net' cannot be built: AttributeError: module 'keras' has no attribute 'Danse'"
    )


def out_of_memory(actor: Actor) -> None:
    actor.log.write_text("Traceback:\ntensorflow.errors.ResourceExhaustedError: {{node}} OOM\n")
    actor.end(1)


@pytest.mark.parametrize(
    "happens", [Actor.hang, lambda actor: actor.end(-11), out_of_memory], ids=["hangs", "crashes", "no memory"]
)
def test_one_that_hangs_crashes_or_is_too_large_goes_on_to_trials_that_record_it(
    tmp_path: Path, happens: object
) -> None:
    zygote = run(tmp_path, Play(happens=happens))  # type: ignore[arg-type]
    assert len(zygote.spawned) == 1


def raises(actor: Actor) -> None:
    actor.log.write_text(TRACEBACK)
    actor.end(1)


def builds_none(actor: Actor) -> None:
    actor.channel.send(Report(phase="build"))
    actor.say("crashed", "model: 'my.models:net' returned builtins.NoneType, expected a Keras model (keras.Model)")


def test_one_that_builds_no_model_goes_on_among_others_as_one_that_raises_and_a_name_that_is_not_there_does_not(
    tmp_path: Path,
) -> None:
    sick, well = {"model": "my.models:net"}, {"model": "mnist_cnn"}
    zygote = FakeZygote(tmp_path, lambda _: Play(happens=builds_none))
    preflight(zygote, requests(sick, well), limit_s=0.3, some_may_raise=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected a Keras model"):
        preflight(zygote, requests(sick), limit_s=0.3, some_may_raise=True)  # type: ignore[arg-type]
    zygote = FakeZygote(tmp_path, lambda _: Play(happens=lambda actor: actor.say("crashed", "cannot import 'my'")))
    with pytest.raises(UsageError, match="cannot import 'my'"):
        preflight(zygote, requests(sick, well), limit_s=0.3, some_may_raise=True)  # type: ignore[arg-type]


def test_one_that_raises_among_others_goes_on_to_trials_that_record_it_where_it_may(tmp_path: Path) -> None:
    sick, well = {"model": "my.models:net"}, {"model": "mnist_cnn"}
    zygote = FakeZygote(tmp_path, lambda _: Play(happens=raises))
    preflight(zygote, requests(sick, well), limit_s=0.3, some_may_raise=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be built"):
        preflight(zygote, requests(sick, well), limit_s=0.3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be built"):
        preflight(zygote, requests(sick, sick), limit_s=0.3, some_may_raise=True)  # type: ignore[arg-type]
