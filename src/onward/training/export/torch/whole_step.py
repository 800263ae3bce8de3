"""How PyTorch calls the graphs of a training."""

from onward.backends.backend import backend
from onward.backends.torch.convert import RUNTIME
from onward.training.export.graphs import Graphs
from onward.training.export.whole_script import Framework
from onward.training.export.whole_step import Target

ABOUT = "Functions that PyTorch itself does not have."
TORCH = Framework(
    title="PyTorch",
    tensor="Tensor",
    imports={
        "torch": "import torch",
        "Tensor": "from torch import Tensor",
        "load_file": "from safetensors.torch import load_file",
        "save_file": "from safetensors.torch import save_file",
    },
    dtypes="torch",
    read="torch.from_numpy(file[name]).to(dtype)",
    plain="{{name: tensor.contiguous().clone() for name, tensor in {tensors}.items()}}",
    traced=("@torch.no_grad()",),
    scalars=("torch.tensor({})", "torch.tensor({})"),
    seed="torch.manual_seed(epoch)  # an epoch is the same, however often training was interrupted before",
)


def target() -> Target:
    torch = backend("torch")
    return Target(torch, Graphs(torch), TORCH, RUNTIME, ABOUT)
