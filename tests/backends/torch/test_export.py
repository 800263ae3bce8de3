"""Converted models go through torch.export with a dynamic batch, and through torch.compile, without a break."""

import onnx
import pytest
import torch
from test_state_dict import ConvNet, Recurrent, Transformer, export, randomise
from torch import nn

import onward


@pytest.fixture(scope="module", params=[ConvNet, Transformer, Recurrent])
def nets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    net = randomise(request.param())
    path = tmp_path_factory.mktemp("nets") / "net.onnx"
    export(net, path, optimize=True)
    return net, onward.to_torch(path)


def larger(net: nn.Module) -> list[torch.Tensor]:
    """The example inputs with a batch of another size."""
    return [torch.cat([x, x.flip(0), x[:1]]) for x in net.example]


def test_export_with_dynamic_batch(nets: tuple[nn.Module, nn.Module]) -> None:
    net, converted = nets
    dynamic = tuple({0: torch.export.Dim.DYNAMIC} for _ in net.example)
    program = torch.export.export(converted, net.example, dynamic_shapes=dynamic)
    inputs = larger(net)
    torch.testing.assert_close(program.module()(*inputs), net(*inputs), atol=1e-5, rtol=1e-5)


def test_compile(nets: tuple[nn.Module, nn.Module]) -> None:
    """Without a break in the graph, but for recurrent modules, at which the compiler itself stops."""
    net, converted = nets
    torch._dynamo.reset()
    recurrent = any(isinstance(m, nn.RNNBase) for m in converted.modules())
    compiled = torch.compile(converted, fullgraph=not recurrent, dynamic=True, backend="eager")
    for inputs in (net.example, larger(net)):
        torch.testing.assert_close(compiled(*inputs), net(*inputs), atol=1e-5, rtol=1e-5)


LENGTHS = """<ir_version: 10, opset_import: ["" : 20]> g (float[n] x, int64[n] counts) => (float[m] y)
<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] axis = {1}> {
    total = ReduceSum<keepdims=0>(counts, first)
    places = Range(zero, total, one)
    ends = CumSum(counts, zero)
    column = Unsqueeze(places, axis)
    after = GreaterOrEqual(column, ends)
    passed = Cast<to=7>(after)
    row = ReduceSum<keepdims=0>(passed, axis)
    y = Gather(x, row)
}"""


def test_export_with_a_length_from_the_data() -> None:
    """As speech is made: each sound is repeated as often as a layer before says."""
    net = onward.to_torch(onnx.parser.parse_model(LENGTHS))
    inputs = (torch.randn(3), torch.tensor([2, 0, 3]))
    program = torch.export.export(net, inputs, dynamic_shapes=({0: torch.export.Dim.AUTO},) * 2)
    for x, counts in [inputs, (torch.randn(5), torch.tensor([1, 4, 0, 2, 2]))]:
        torch.testing.assert_close(program.module()(x, counts), x.repeat_interleave(counts))
