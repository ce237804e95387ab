"""What a compiled program says of its collectives."""

from harness.engines._on_jax.executed import collectives

HLO = """
  %all-reduce.3 = (f32[512,784]{1,0}, f32[10]{0}, f32[]) all-reduce(%dot.3, %dot.4, %sum), channel_id=1, to_apply=%add
  %get-tuple-element = f32[512,784]{1,0} get-tuple-element(%all-reduce.3), index=0
  %all-reduce.4 = f32[] all-reduce(%loss), channel_id=2, to_apply=%add
  ROOT %gathered = bf16[4,8]{1,0} all-gather-start(%part), dimensions={0}
"""


def test_every_collective_is_counted_once_with_the_bytes_of_its_arrays() -> None:
    found = [(one.name, one.bytes) for one in collectives(HLO)]
    assert found == [("all-reduce", 4 * (512 * 784 + 10)), ("all-reduce", 0), ("all-gather", 2 * 32)]


def test_a_program_without_collectives_has_none() -> None:
    assert list(collectives("ROOT %dot.1 = f32[8,8]{1,0} dot(%a, %b)")) == []
