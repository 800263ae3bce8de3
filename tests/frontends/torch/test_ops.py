"""Ops that PyTorch's exporter lacks or gets wrong: our rules compute what PyTorch does, what is left is refused."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from op_cases import LINALG, OPS
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import onward
from onward.errors import OnwardError, UnsupportedError

CASES = OPS | LINALG
GROUPS = {
    "gamma": "lgamma mvlgamma digamma polygamma_1 polygamma_3",
    "normal": "erfinv erfcx ndtri log_ndtr",
    "bessel": "i0 i0e i1 i1e bessel_j0 bessel_j1",
    "elementwise": "frexp copysign hypot gcd lcm",
    "running": "cumprod cumprod_with_zeros cummax cummin",
    "median": "median median_dim nanmedian nanmedian_dim kthvalue",
    "order": "mode mode_of_integers argsort_stable searchsorted searchsorted_right searchsorted_rows",
    "distance": "cdist cdist_1 cdist_inf cdist_3 pdist",
    "index": "bincount bincount_weighted index_reduce scatter_reduce_mean put multilabel_margin_loss adaptive_max_pool",
    "solve": "slogdet inv solve solve_vector solve_triangular triangular_solve matrix_power_negative",
    "factor": "cholesky cholesky_upper cholesky_solve cholesky_inverse qr lu lu_solve",
    "singular values": "svdvals eigvalsh pinv matrix_rank matrix_norm_2 matrix_norm_nuc cond",
    "exponential": "matrix_exp matrix_power",
}
REFUSED = {
    "igamma": "prims.igamma",
    "igammac": "prims.igammac",
    "zeta": "prims.zeta",
    "nextafter": "prims.nextafter",
    "bessel_y0": "aten.special_bessel_y0",
    "modified_bessel_k0": "aten.special_modified_bessel_k0",
    "histc_of_the_range": "aten_histc",
    "ctc_loss": "aten._ctc_loss",
    "eigh": "aten._linalg_eigh",
    "svd": "aten._linalg_svd",
    "lstsq": "aten.linalg_lstsq",
    "eig": "aten.linalg_eig",
    "householder_product": "aten.geqrf",
    "tensorinv": "aten._linalg_check_errors",
}
"""What has no translation, and what the message names."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


class Calls(nn.Module):
    """Several calls, each with its own share of the inputs."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        rest, found = list(tensors), []
        for name in self.names:
            call, args = CASES[name]
            found += pytree.tree_leaves(call(*(rest.pop(0) for _ in args)))
        return found


def ran(model: onward.Model, args: tuple[Tensor, ...]) -> list[np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, (arg.numpy() for arg in args), strict=True)))


@pytest.mark.parametrize("group", GROUPS)
def test_rules_compute_what_pytorch_does(group: str) -> None:
    names = GROUPS[group].split()
    args = tuple(arg for name in names for arg in CASES[name][1])
    found = ran(onward.from_torch(Calls(names), args, dynamic_batch=False, check=False), args)
    for name in names:
        call, inputs = CASES[name]
        for wanted in pytree.tree_leaves(call(*inputs)):
            actual = found.pop(0)
            assert actual.dtype == wanted.numpy().dtype, name
            if wanted.is_floating_point():
                np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(actual, wanted, err_msg=name)
    assert not found


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_is_refused_by_name(name: str) -> None:
    with pytest.raises(OnwardError, match=REFUSED[name].replace(".", r"\.")):
        onward.from_torch(Calls([name]), CASES[name][1], dynamic_batch=False)


def checked(function: Callable[..., Any], *args: Tensor, rtol: float = 1e-9) -> None:
    class Call(nn.Module):
        def forward(self, *tensors: Tensor) -> Any:
            return function(*tensors)

    found = ran(onward.from_torch(Call(), args, dynamic_batch=False, check=False), args)
    for actual, wanted in zip(found, pytree.tree_leaves(function(*args)), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=1e-13)


def test_ends_of_special_functions() -> None:
    inf, nan = math.inf, math.nan
    at = torch.tensor([-inf, -30.0, -3.5, -2.0, -0.0, 0.0, 1e-8, 0.5, 1.0, 2.0, 26.0, 700.0, inf, nan]).double()

    def all_of_them(x: Tensor, y: Tensor) -> list[Tensor]:
        special = torch.special
        of_any = (torch.lgamma, torch.digamma, special.erfcx, special.log_ndtr, torch.i0, special.i1e)
        return [*(function(x) for function in of_any), torch.erfinv(y), special.ndtri((y + 1) / 2)]

    checked(all_of_them, at, torch.tensor([-1.5, -1.0, -0.9999, 0.0, 1e-12, 0.3, 1 - 1e-12, 1.0, nan]).double())


def test_order_with_holes_and_ties() -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([[nan, 1.0, inf, -inf], [inf, inf, 2.0, 2.0], [nan, nan, nan, 3.0]])

    def all_of_them(x: Tensor) -> list[Tensor]:
        values = [torch.median(x, 1), torch.nanmedian(x, 1), torch.kthvalue(x, 3, 1)]
        return [*(found.values for found in values), *torch.cummax(x, 1), *torch.cummin(x, 0), torch.median(x[1:2])]

    checked(all_of_them, x)
    checked(lambda edges, x: torch.searchsorted(edges, x), torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([nan, 1.0]))


def test_singular_matrices() -> None:
    checked(torch.linalg.slogdet, torch.tensor([[1.0, 2.0], [2.0, 4.0]]).double())
    rank_one = torch.outer(torch.arange(1.0, 5.0), torch.arange(1.0, 4.0)).double()
    checked(lambda a: (torch.linalg.pinv(a), torch.linalg.matrix_rank(a)), rank_one)
    mirror = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]).double()  # eigenvalues of one size
    checked(torch.linalg.eigvalsh, torch.stack([mirror, torch.zeros(3, 3).double(), -rank_one[:3]]))
    checked(torch.linalg.matrix_exp, torch.stack([torch.zeros(3, 3), torch.full((3, 3), 9.0)]).double())


def test_reductions_without_what_is_there() -> None:
    x, index = torch.arange(6.0), torch.tensor([0, 0, 3, 5])
    source = torch.tensor([5.0, -7.0, 2.0, 0.5])

    def all_of_them(x: Tensor, index: Tensor, source: Tensor) -> list[Tensor]:
        ways = [(how, includes) for how in ("sum", "prod", "mean", "amax", "amin") for includes in (True, False)]
        return [x.scatter_reduce(0, index, source, how, include_self=includes) for how, includes in ways]

    checked(all_of_them, x, index, source)


def test_open_dimensions_stay_open() -> None:
    class Running(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return torch.cumprod(x, 1), *torch.cummax(x, 0), torch.median(x, 1).values, torch.cdist(x, x)

    model = onward.from_torch(Running(), torch.randn(3, 4), dynamic={"x": {0: "rows", 1: "columns"}})
    other = torch.randn(6, 7)
    for actual, wanted in zip(ran(model, (other,)), Running()(other), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_the_number_of_steps_has_to_be_known() -> None:
    class Inverse(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.inv(x)

    with pytest.raises(UnsupportedError, match=r"aten\.linalg_inv: matrices of size 65 are too large"):
        onward.from_torch(Inverse(), torch.eye(65), dynamic_batch=False)
