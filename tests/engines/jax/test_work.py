"""What a compiled program says of its products and convolutions."""

from collections import Counter

import pytest

from harness.engines._on_jax.work import work_of

HLO = """
%fused (p.1: f32[8,784], p.2: f32[784,512]) -> f32[8,512] {
  %p.1 = f32[8,784]{1,0} parameter(0)
  %p.2 = f32[784,512]{1,0} parameter(1)
  ROOT %dot.1 = f32[8,512]{1,0} dot(%p.1, %p.2), lhs_contracting_dims={1}, metadata={op_name="jit(step)/jvp()/dot"}
}
ENTRY %main {
  %x = f32[4,28,28,1]{3,2,1,0} parameter(0)
  %kernel = f32[3,3,1,32]{3,2,1,0} parameter(1)
  %g.1 = f32[8,512]{1,0} parameter(2)
  %conv = f32[4,26,26,32]{3,2,1,0} convolution(%x, %kernel), window={size=3x3}, dim_labels=b01f_01io->b01f
  %dot.2 = f32[784,512]{1,0} dot(%p.1, %g.1), lhs_contracting_dims={0}, metadata={op_name="transpose(jvp())/dot"}
}
"""


def test_each_product_is_counted_by_what_it_gives_with_its_operations_and_the_way_that_it_goes() -> None:
    found = work_of(HLO)
    assert found.ops == Counter(
        {"dot f32[8, 512]": 1, "dot f32[512, 784] backward": 1, "convolution f32[4, 26, 26, 32]": 1}
    )
    assert found.flops == 2 * 8 * 512 * 784 * 2 + 2 * (4 * 26 * 26 * 32) * 9


LOWERED = """
    %1 = stablehlo.dot_general %a, %b : (tensor<8x784xf32>) -> tensor<8x512xf32> loc(#loc3)
    %2 = stablehlo.convolution(%a, %b) {dim_numbers = []} : (tensor<4x28x28x1xf32>) -> tensor<4x26x26x32xf32> loc(#loc5)
    %3 = stablehlo.dot_general %a, %b : (tensor<8x784xf32>) -> tensor<784x512xf32> loc(#loc4)
#loc3 = loc("jit(step)/jvp()/dot"(#loc1))
#loc4 = loc("jit(step)/transpose(jvp())/dot"(#loc1))
#loc5 = loc("jit(step)/WAY/conv"(#loc1))
"""


@pytest.mark.parametrize(
    ("lowered", "way"),
    [
        (LOWERED.replace("WAY", "transpose(jvp())"), " backward"),
        (LOWERED.replace("WAY", "jvp()"), ""),
        (LOWERED.replace("WAY", "transpose(jvp())") * 2, ""),
    ],
    ids=["no more go forward", "one goes forward", "there are not as many"],
)
def test_a_convolution_without_a_name_goes_backward_where_all_that_go_forward_have_theirs(
    lowered: str, way: str
) -> None:
    assert work_of(HLO, lowered).ops[f"convolution f32[4, 26, 26, 32]{way}"] == 1


def test_a_program_without_products_computes_nothing() -> None:
    assert work_of("ROOT %add.1 = f32[8]{0} add(%a, %b)") == (Counter(), 0)
