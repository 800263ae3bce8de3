"""Calls of PyTorch that its own exporter lacks an op for, or may: each as a function and inputs for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def positive(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 4 + 0.05


def unit(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 1.98 - 0.99


def whole(*shape: int, high: int = 6, seed: int = 0) -> Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def definite(size: int, *batch: int, seed: int = 0) -> Tensor:
    """Symmetric, with positive eigenvalues that are apart from each other."""
    a = numbers(*batch, size, size, seed=seed)
    return a @ a.mT / size + torch.diag(torch.arange(1, size + 1) * 0.7)


def regular(size: int, *batch: int, seed: int = 0) -> Tensor:
    """Invertible."""
    return numbers(*batch, size, size, seed=seed) + 3 * torch.eye(size)


M = numbers(4, 5)
TIES = torch.tensor([[3.0, 1.0, 3.0, 1.0, 2.0], [2.0, 2.0, 2.0, 5.0, 5.0], [0.0, 1.0, 0.0, 1.0, 0.0]])
HOLES = torch.tensor([[1.0, float("nan"), 3.0, 2.0], [float("nan")] * 4, [4.0, 3.0, 2.0, 1.0]])
EDGES = torch.tensor([-1.0, 0.0, 0.5, 2.0])
SIGNED = torch.tensor([-3.7, -2.5, -1.0, -0.3, 0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.3, 7.5, 20.0, 60.0, 170.0])

OPS: dict[str, Case] = {
    "lgamma": (torch.lgamma, (SIGNED,)),
    "mvlgamma": (lambda x: torch.mvlgamma(x, 2), (positive(6) + 1,)),
    "digamma": (torch.digamma, (SIGNED[SIGNED != 0],)),
    "polygamma_1": (lambda x: torch.polygamma(1, x), (positive(9),)),
    "polygamma_3": (lambda x: torch.polygamma(3, x), (positive(9),)),
    "erfinv": (torch.erfinv, (unit(40),)),
    "erfc": (torch.erfc, (numbers(40) * 3,)),
    "erfcx": (torch.special.erfcx, (numbers(40) * 3,)),
    "ndtri": (torch.special.ndtri, (torch.rand(40, generator=torch.Generator().manual_seed(1)),)),
    "log_ndtr": (torch.special.log_ndtr, (numbers(40) * 6,)),
    "igamma": (torch.special.gammainc, (positive(30), positive(30, seed=1))),
    "igammac": (torch.special.gammaincc, (positive(30), positive(30, seed=1))),
    "i0": (torch.i0, (numbers(40) * 8,)),
    "i0e": (torch.special.i0e, (numbers(40) * 8,)),
    "i1": (torch.special.i1, (numbers(40) * 8,)),
    "i1e": (torch.special.i1e, (numbers(40) * 8,)),
    "bessel_j0": (torch.special.bessel_j0, (numbers(40) * 6,)),
    "bessel_j1": (torch.special.bessel_j1, (numbers(40) * 6,)),
    "bessel_y0": (torch.special.bessel_y0, (positive(40) * 3,)),
    "modified_bessel_k0": (torch.special.modified_bessel_k0, (positive(40),)),
    "zeta": (torch.special.zeta, (positive(30) + 1.1, positive(30, seed=1))),
    "sinc": (torch.sinc, (numbers(20),)),
    "frexp": (torch.frexp, (numbers(20) * 100,)),
    "ldexp": (torch.ldexp, (numbers(20), whole(20))),
    "nextafter": (torch.nextafter, (numbers(20), numbers(20, seed=1))),
    "copysign": (torch.copysign, (numbers(20), numbers(20, seed=1))),
    "hypot": (torch.hypot, (numbers(20), numbers(20, seed=1))),
    "heaviside": (torch.heaviside, (EDGES, torch.tensor([0.5]))),
    "gcd": (torch.gcd, (whole(12, high=60), whole(12, high=60, seed=1))),
    "lcm": (torch.lcm, (whole(12, high=60), whole(12, high=60, seed=1))),
    "cumprod": (lambda x: torch.cumprod(x, 1), (M,)),
    "cumprod_with_zeros": (lambda x: torch.cumprod(x, 0), (torch.tensor([2.0, -1.0, 0.0, 3.0, -4.0]),)),
    "cummax": (lambda x: torch.cummax(x, 1), (TIES,)),
    "cummin": (lambda x: torch.cummin(x, 0), (TIES,)),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), (M * 20,)),
    "median": (torch.median, (M,)),
    "median_dim": (lambda x: torch.median(x, 1), (M,)),
    "nanmedian": (torch.nanmedian, (HOLES,)),
    "nanmedian_dim": (lambda x: torch.nanmedian(x, 1).values, (HOLES,)),
    "kthvalue": (lambda x: torch.kthvalue(x, 2, 1), (M,)),
    "mode": (lambda x: torch.mode(x, 1).values, (TIES,)),
    "mode_of_integers": (lambda x: torch.mode(x, 0).values, (whole(9, 4, high=3),)),
    "quantile": (lambda x: torch.quantile(x, 0.3, 1), (M,)),
    "argsort_stable": (lambda x: torch.argsort(x, dim=1, stable=True), (M,)),
    "searchsorted": (torch.searchsorted, (EDGES, M)),
    "searchsorted_right": (
        lambda e, x: torch.searchsorted(e, x, right=True),
        (EDGES, torch.tensor([0.0, 2.0, 9.0, -1.0])),
    ),
    "searchsorted_rows": (torch.searchsorted, (TIES.sort(1).values, numbers(3, 2))),
    "bucketize": (lambda x, e: torch.bucketize(x, e), (M, EDGES)),
    "cdist": (torch.cdist, (M, numbers(3, 5, seed=1))),
    "cdist_1": (lambda a, b: torch.cdist(a, b, p=1.0), (M, numbers(3, 5, seed=1))),
    "cdist_inf": (lambda a, b: torch.cdist(a, b, p=float("inf")), (M, numbers(3, 5, seed=1))),
    "cdist_3": (lambda a, b: torch.cdist(a, b, p=3.0), (M, numbers(3, 5, seed=1))),
    "pdist": (torch.pdist, (M,)),
    "histc": (lambda x: torch.histc(x, 5, -2, 2), (M,)),
    "histc_of_the_range": (lambda x: torch.histc(x, 4), (M,)),
    "bincount": (lambda x: torch.bincount(x, minlength=8), (whole(20),)),
    "bincount_weighted": (lambda x, w: torch.bincount(x, w, 8), (whole(20), numbers(20))),
    "unique": (lambda x: torch.unique(x), (whole(12),)),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 1.5), (M,)),
    "index_reduce": (lambda x, i, s: x.index_reduce(0, i, s, "amax"), (M, torch.tensor([0, 2]), numbers(2, 5))),
    "scatter_reduce_mean": (lambda x, i, s: x.scatter_reduce(0, i, s, "mean"), (M, whole(2, 5, high=4), numbers(2, 5))),
    "put": (lambda x, i, s: torch.ops.aten.put(x, i, s), (M, torch.tensor([0, 7]), numbers(2))),
    "combinations": (torch.combinations, (numbers(4),)),
    "vander": (torch.vander, (numbers(4),)),
    "cov": (torch.cov, (M,)),
    "corrcoef": (torch.corrcoef, (M,)),
    "cross": (torch.linalg.cross, (numbers(4, 3), numbers(4, 3, seed=1))),
    "isin": (torch.isin, (whole(4, 5), torch.tensor([1, 3]))),
    "ctc_loss": (
        lambda x, t: torch.nn.functional.ctc_loss(x, t, (6, 6), (2, 3)),
        (numbers(6, 2, 4).log_softmax(2), torch.tensor([[1, 2, 0], [3, 1, 2]])),
    ),
    "multilabel_margin_loss": (
        torch.nn.functional.multilabel_margin_loss,
        (numbers(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])),
    ),
    "grid_sample": (
        lambda x, g: torch.nn.functional.grid_sample(x, g, align_corners=False),
        (numbers(1, 2, 5, 5), unit(1, 4, 4, 2)),
    ),
    "adaptive_max_pool": (lambda x: torch.nn.functional.adaptive_max_pool2d(x, 3), (numbers(1, 2, 7, 8),)),
    "fft": (lambda x: torch.view_as_real(torch.fft.fft(x)), (M,)),
    "stft": (
        lambda x: torch.view_as_real(torch.stft(x, 8, window=torch.hann_window(8), return_complex=True)),
        (numbers(1, 32),),
    ),
}

LINALG: dict[str, Case] = {
    "det": (torch.linalg.det, (regular(4, 2),)),
    "slogdet": (torch.linalg.slogdet, (regular(4, 2),)),
    "inv": (torch.linalg.inv, (regular(4, 2),)),
    "pinv": (torch.linalg.pinv, (numbers(5, 3),)),
    "solve": (torch.linalg.solve, (regular(4), numbers(4, 2))),
    "solve_vector": (torch.linalg.solve, (regular(4), numbers(4))),
    "solve_triangular": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
        (regular(4).triu(), numbers(4, 2)),
    ),
    "triangular_solve": (
        lambda a, b: torch.triangular_solve(b, a, upper=False).solution,
        (regular(4).tril(), numbers(4, 2)),
    ),
    "cholesky": (torch.linalg.cholesky, (definite(4, 2),)),
    "cholesky_upper": (lambda a: torch.linalg.cholesky(a, upper=True), (definite(4),)),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, torch.linalg.cholesky(a)), (numbers(4, 2), definite(4))),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a)), (definite(4),)),
    "qr": (torch.linalg.qr, (numbers(5, 3),)),
    "lu": (torch.linalg.lu, (regular(4),)),
    "lu_solve": (lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), (regular(4), numbers(4, 2))),
    "eigvalsh": (torch.linalg.eigvalsh, (definite(4),)),
    "eigh": (lambda a: torch.linalg.eigh(a).eigenvectors.abs(), (definite(4),)),
    "svdvals": (torch.linalg.svdvals, (numbers(5, 3),)),
    "svd": (
        lambda a: (lambda u, s, v: (u.abs(), s, v.abs()))(*torch.linalg.svd(a, full_matrices=False)),
        (numbers(5, 3),),
    ),
    "lstsq": (lambda a, b: torch.linalg.lstsq(a, b).solution, (numbers(5, 3), numbers(5, 2))),
    "matrix_exp": (torch.linalg.matrix_exp, (numbers(4, 4),)),
    "matrix_power": (lambda a: torch.linalg.matrix_power(a, 5), (numbers(4, 4) * 0.5,)),
    "matrix_power_negative": (lambda a: torch.linalg.matrix_power(a, -2), (regular(4),)),
    "matrix_rank": (torch.linalg.matrix_rank, (numbers(5, 3),)),
    "multi_dot": (lambda a, b, c: torch.linalg.multi_dot([a, b, c]), (numbers(2, 3), numbers(3, 4), numbers(4, 2))),
    "vector_norm": (lambda a: torch.linalg.vector_norm(a, 3.0, 1), (M,)),
    "matrix_norm_fro": (torch.linalg.matrix_norm, (M,)),
    "matrix_norm_2": (lambda a: torch.linalg.matrix_norm(a, 2), (M,)),
    "matrix_norm_nuc": (lambda a: torch.linalg.matrix_norm(a, "nuc"), (M,)),
    "cond": (torch.linalg.cond, (regular(4),)),
    "householder_product": (lambda a: torch.linalg.householder_product(*torch.geqrf(a)), (numbers(5, 3),)),
    "tensorinv": (lambda a: torch.linalg.tensorinv(a.reshape(4, 2, 2), 1), (regular(4),)),
    "eig": (lambda a: torch.linalg.eigvals(a).abs().sort().values, (regular(4),)),
}
