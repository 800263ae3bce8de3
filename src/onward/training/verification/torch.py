"""An exported training in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from onward.training.verification.package import Array, Batches, Package


class TorchPackage(Package):
    def loaded(self) -> dict[str, Any]:
        net = getattr(self.train, "load_adapted", self.train.load)()
        held = {"net": net, "optimizer": self.train.load_optimizer(net)}
        if hasattr(self.train, "load_average"):
            held["average"] = self.train.load_average(net)
        return held

    def batch(self, arrays: Mapping[str, Array]) -> Any:
        import torch

        return {name: torch.from_numpy(arrays[name]).to(dtype) for name, dtype in self.train.INPUTS.items()}

    def step(self, batches: Batches) -> list[float]:
        losses = self.called(self.train.train, batches=[self.batch(one) for one in batches], start=self.made)
        self.made += 1
        return [float(loss) for loss in losses]

    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        import torch

        self.called(self.train.train, batches=[], start=self.made)  # this alone sets the mode of training
        net = copy.deepcopy(self.held["net"])
        found: list[Any] = []
        net.register_forward_hook(lambda module, given, result: found.append(result))
        loss = self.train.loss_of(net, self.batch(batch))
        named = {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}
        slopes = torch.autograd.grad(loss, list(named.values()), materialize_grads=True)
        outputs = found[0] if isinstance(found[0], tuple | list) else [found[0]]
        gradients = {name: _array(slope) for name, slope in zip(named, slopes, strict=True)}
        return [_array(output) for output in outputs], float(loss.detach()), gradients

    def state(self) -> dict[str, Array]:
        net, optimizer = self.held["net"], self.held["optimizer"]
        names = {parameter: name for name, parameter in net.named_parameters()}
        found = {name: _array(parameter) for parameter, name in names.items()}
        found |= {name: _array(buffer) for name, buffer in net.named_buffers() if name in self.statistics}
        for parameter, own in optimizer.state.items():
            slots = [slot for slot in getattr(self.train, "SLOTS", []) if slot != "step"]
            found |= {f"{names[parameter]}.{slot}": _array(own[slot]) for slot in slots}
        if "average" in self.held:
            averages = self.held["average"].module.named_parameters()
            found |= {f"{name}.average": _array(parameter) for name, parameter in averages}
        return found


def _array(tensor: Any) -> Array:
    array: Array = tensor.detach().cpu().numpy().copy()
    return array


PACKAGE = TorchPackage
