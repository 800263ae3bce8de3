"""jax.scipy.signal, linalg, ndimage, integrate and others; jax.numpy.fft."""

import jax.numpy as jnp
from jax import scipy
from jax.numpy import fft
from jax.scipy.spatial.transform import Rotation
from jax_cases import case, cases

cases(
    "f32[3,8] plain",
    fft_magnitude=lambda x: jnp.abs(fft.fft(x)),
    fft_parts=lambda x: (fft.fft(x).real, fft.fft(x).imag),
    fft_longer=lambda x: fft.fft(x, n=12).real,
    fft_shorter=lambda x: fft.fft(x, n=5).real,
    fft_axis=lambda x: fft.fft(x, axis=0).imag,
    fft_ortho=lambda x: fft.fft(x, norm="ortho").real,
    ifft_of_fft=lambda x: fft.ifft(fft.fft(x)).real,
    rfft_power=lambda x: jnp.abs(fft.rfft(x)) ** 2,
    rfft_irfft=lambda x: fft.irfft(fft.rfft(x)),
    rfft_odd=lambda x: fft.irfft(fft.rfft(x[:, :7]), n=7),
    fft2_magnitude=lambda x: jnp.abs(fft.fft2(x)),
    rfft2_back=lambda x: fft.irfft2(fft.rfft2(x)),
    fftn_sum=lambda x: fft.fftn(x.reshape(3, 2, 4)).real,
    hfft=lambda x: fft.hfft(x[0, :5] + 0j),
    fftshift=fft.fftshift,
    ifftshift=lambda x: fft.ifftshift(x, axes=1),
    fftfreq=lambda x: x * fft.fftfreq(8, 0.5),
    rfftfreq=lambda x: x[:, :5] * fft.rfftfreq(8),
    lowpass=lambda x: fft.irfft(fft.rfft(x) * (jnp.arange(5) < 3)),
    convolution_by_fft=lambda x: fft.irfft(fft.rfft(x[0], 16) * fft.rfft(x[1], 16), 16),
    autocorrelation=lambda x: fft.irfft(jnp.abs(fft.rfft(x, 16)) ** 2, 16)[:, :8],
    fourier_mixing=lambda x: jnp.real(fft.fft(fft.fft(x, axis=-1), axis=-2)),
    dct=lambda x: scipy.fft.dct(x),
    dct_ortho=lambda x: scipy.fft.dct(x, norm="ortho"),
    idct=lambda x: scipy.fft.idct(x),
    dctn=lambda x: scipy.fft.dctn(x),
)
cases(
    "f32[16] plain",
    "f32[5] plain",
    convolve=scipy.signal.convolve,
    convolve_same=lambda x, y: scipy.signal.convolve(x, y, mode="same"),
    correlate=lambda x, y: scipy.signal.correlate(x, y, mode="valid"),
    fftconvolve=scipy.signal.fftconvolve,
    detrend=lambda x, y: scipy.signal.detrend(x),
    detrend_constant=lambda x, y: scipy.signal.detrend(x, type="constant"),
    stft_magnitude=lambda x, y: jnp.abs(scipy.signal.stft(x, nperseg=8)[2]),
    welch=lambda x, y: scipy.signal.welch(x, nperseg=8)[1],
    periodogram_by_hand=lambda x, y: jnp.abs(fft.rfft(x * jnp.hanning(16))) ** 2,
    savitzky_golay_like=lambda x, y: jnp.convolve(x, jnp.array([-3.0, 12, 17, 12, -3]) / 35, "valid"),
)
cases(
    "f32[4,4] plain",
    expm=lambda a: scipy.linalg.expm(a / 8),
    lu_product=lambda a: jnp.linalg.multi_dot(scipy.linalg.lu(a + 9 * jnp.eye(4))),
    lu_factors=lambda a: scipy.linalg.lu(a + 9 * jnp.eye(4))[1:],
    lu_pivots=lambda a: scipy.linalg.lu_factor(a)[1],
    det=lambda a: scipy.linalg.det(a @ a.T / 8 + jnp.eye(4)),
    inv=lambda a: scipy.linalg.inv(a + 9 * jnp.eye(4)),
    cholesky=lambda a: scipy.linalg.cholesky(a @ a.T / 8 + jnp.eye(4), lower=True),
    eigh=lambda a: scipy.linalg.eigh(a + a.T, eigvals_only=True),
    svd=lambda a: scipy.linalg.svd(a, compute_uv=False),
    block_diag=lambda a: scipy.linalg.block_diag(a[:2, :2], a[:1]),
    toeplitz=lambda a: scipy.linalg.toeplitz(a[0], a[:, 1]),
    hilbert=lambda a: a @ scipy.linalg.hilbert(4),
    sqrtm_symmetric=lambda a: (lambda w, v: (v * jnp.sqrt(w)) @ v.T)(*jnp.linalg.eigh(a @ a.T / 8 + jnp.eye(4))),
    polar_part=lambda a: (lambda u, s, vt: u @ vt)(*jnp.linalg.svd(a + 9 * jnp.eye(4))),
)
cases(
    "f32[4,4] plain",
    "f32[4] plain",
    solve=lambda a, b: scipy.linalg.solve(a + 9 * jnp.eye(4), b),
    solve_positive=lambda a, b: scipy.linalg.solve(a @ a.T / 8 + jnp.eye(4), b, assume_a="pos"),
    solve_triangular=lambda a, b: scipy.linalg.solve_triangular(jnp.tril(a) + 9 * jnp.eye(4), b, lower=True),
    solve_triangular_transposed=lambda a, b: scipy.linalg.solve_triangular(jnp.triu(a) + 9 * jnp.eye(4), b, trans=1),
    cho_solve=lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a @ a.T / 8 + jnp.eye(4)), b),
    lu_solve=lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a + 9 * jnp.eye(4)), b),
    gmres=lambda a, b: scipy.sparse.linalg.gmres(a / 9 + jnp.eye(4), b, maxiter=2)[0],
    bicgstab=lambda a, b: scipy.sparse.linalg.bicgstab(a / 9 + jnp.eye(4), b, maxiter=3, tol=0.0)[0],
)


@case("f32[8,8] plain", "f32[3,3] plain")
def convolve_images(x, kernel):
    return scipy.signal.convolve2d(x, kernel, mode="same"), scipy.signal.correlate2d(x, kernel, mode="valid")


@case("f32[6,7] plain", "f32[2,5] 0..5")
def image_at_coordinates(x, where):
    return scipy.ndimage.map_coordinates(x, where, order=1)


@case("f32[6,7] plain", "f32[2,5] -2..8")
def image_at_coordinates_outside(x, where):
    nearest = scipy.ndimage.map_coordinates(x, where, order=0, mode="nearest")
    return nearest, scipy.ndimage.map_coordinates(x, where, order=1, mode="constant", cval=-1.0)


@case("f32[9] plain")
def integrate(y):
    return scipy.integrate.trapezoid(y, dx=0.25), scipy.integrate.trapezoid(y, jnp.linspace(0, 1, 9))


@case("f32[3] plain")
def interpolate_on_a_grid(q):
    grid = (jnp.arange(4.0), jnp.arange(3.0))
    values = jnp.arange(12.0).reshape(4, 3) ** 1.5
    points = jnp.clip(jnp.stack([jnp.abs(q), jnp.abs(q[::-1])], -1), 0, 2)
    return scipy.interpolate.RegularGridInterpolator(grid, values)(points)


@case("f32[4,3] plain", "f32[3,2] plain")
def kmeans_step(x, y):
    code, distance = scipy.cluster.vq.vq(x, y.T)
    return code, distance


@case("f32[3] plain")
def rotation(angles):
    turn = Rotation.from_euler("xyz", angles)
    return turn.as_matrix(), jnp.abs(turn.as_quat())


@case("f32[32] plain")
def mel_like_features(x):
    frames = jnp.stack([x[i : i + 16] for i in range(0, 17, 8)]) * jnp.hanning(16)
    power = jnp.abs(fft.rfft(frames, axis=-1)) ** 2
    return jnp.log(power @ jnp.abs(jnp.sin(jnp.arange(27.0)).reshape(9, 3)) + 1e-3)


@case("f32[6,6] plain")
def gaussian_blur(x):
    taps = jnp.exp(-0.5 * (jnp.arange(5.0) - 2) ** 2)
    kernel = jnp.outer(taps, taps) / taps.sum() ** 2
    return scipy.signal.convolve(x, kernel, mode="same")
