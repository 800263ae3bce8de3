"""Signals and images."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

IMAGE = numbers(1, 8, 8, 3, low=0, high=1)

DYNAMIC: dict[str, tuple[Any, ...]] = {
    "si_fft": (lambda x: tf.abs(tf.signal.fft(tf.cast(x, tf.complex64))), numbers(2, 8)),
    "si_ifft": (lambda x: tf.math.real(tf.signal.ifft(tf.cast(x, tf.complex64))), numbers(2, 8)),
    "si_fft3d": (lambda x: tf.abs(tf.signal.fft3d(tf.cast(x, tf.complex64))), numbers(2, 3, 4)),
    "si_rfft2d": (lambda x: tf.abs(tf.signal.rfft2d(x)), numbers(4, 6)),
    "si_irfft2d": (lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x)), numbers(4, 6)),
    "si_rfft3d": (lambda x: tf.abs(tf.signal.rfft3d(x)), numbers(2, 4, 6)),
    "si_fftshift": (tf.signal.fftshift, numbers(4, 5)),
    "si_ifftshift": (tf.signal.ifftshift, numbers(4, 5)),
    "si_hamming": (lambda x: x * tf.signal.hamming_window(8), numbers(8)),
    "si_kaiser": (lambda x: x * tf.signal.kaiser_window(8), numbers(8)),
    "si_vorbis": (lambda x: x * tf.signal.vorbis_window(8), numbers(8)),
    "si_dct1": (lambda x: tf.signal.dct(x, 1), numbers(2, 8)),
    "si_dct3": (lambda x: tf.signal.dct(x, 3, norm="ortho"), numbers(2, 8)),
    "si_dct4": (lambda x: tf.signal.dct(x, 4), numbers(2, 8)),
    "si_idct": (lambda x: tf.signal.idct(x, 2), numbers(2, 8)),
    "si_stft_pad": (lambda x: tf.abs(tf.signal.stft(x, 8, 4, fft_length=16, pad_end=True)), numbers(30)),
    "si_frame_pad": (lambda x: tf.signal.frame(x, 4, 3, pad_end=True, pad_value=1.0), numbers(10)),
    "si_linear_mel": (lambda x: tf.matmul(x, tf.signal.linear_to_mel_weight_matrix(5, 9)), numbers(3, 9)),
    "si_fft_dyn": (lambda x: tf.abs(tf.signal.rfft(x)), numbers(3, 7)),
    "si_irfft_len": (lambda x, y: tf.signal.irfft(tf.complex(x, y), [9]), numbers(2, 5), numbers(2, 5, seed=2)),
    "im_flip_ud": (tf.image.flip_up_down, IMAGE),
    "im_transpose": (tf.image.transpose, IMAGE),
    "im_gamma": (lambda x: tf.image.adjust_gamma(x, 2.2, 1.1), IMAGE),
    "im_yiq": (tf.image.rgb_to_yiq, IMAGE),
    "im_yiq2": (tf.image.yiq_to_rgb, IMAGE),
    "im_yuv2": (tf.image.yuv_to_rgb, IMAGE),
    "im_gray_rgb": (tf.image.grayscale_to_rgb, numbers(1, 4, 4, 1)),
    "im_hue_dyn": (lambda x, d: tf.image.adjust_hue(x, d), IMAGE, np.array(0.2, np.float32)),
    "im_contrast_b": (lambda x: tf.image.adjust_contrast(x, 0.3), IMAGE),
    "im_jpeg_q": (lambda x: tf.image.convert_image_dtype(x, tf.uint8), IMAGE),
    "im_u8f": (
        lambda x: tf.image.convert_image_dtype(x, tf.float32),
        integers(1, 4, 4, 3, low=0, high=255, dtype=np.uint8),
    ),
    "im_resize_dyn": (lambda x, n: tf.image.resize(x, n), IMAGE, np.array([5, 11], np.int32)),
    "im_nms_scores": (
        lambda b, q: tf.image.non_max_suppression_with_scores(b, q, 3, soft_nms_sigma=0.5),
        np.sort(numbers(6, 4), 1)[:, [0, 1, 2, 3]],
        numbers(6, low=0, high=1),
    ),
    "im_nms_pad": (
        lambda b, q: tf.image.non_max_suppression_padded(b, q, 4, pad_to_max_output_size=True),
        np.sort(numbers(6, 4), 1),
        numbers(6, low=0, high=1),
    ),
    "im_nms_overlap": (
        lambda b, q: tf.image.non_max_suppression_overlaps(b, q, 3),
        numbers(6, 6, low=0, high=1),
        numbers(6, low=0, high=1),
    ),
    "im_hsv_rand": (lambda x: tf.image.adjust_saturation(x, 0.4), IMAGE),
    "im_dense_warp_like": (lambda x: tf.gather_nd(x, tf.where(x > 0.5)), IMAGE),
}
STATIC: dict[str, tuple[Any, ...]] = {
    "si_mdct": (lambda x: tf.signal.mdct(x, 8), numbers(24)),
    "si_imdct": (lambda x: tf.signal.inverse_mdct(x), numbers(3, 4)),
    "im_pad_bb": (lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 12, 12), IMAGE),
    "im_crop_pad": (lambda x: tf.image.resize_with_crop_or_pad(x, 6, 10), IMAGE),
    "im_resize_u8": (lambda x: tf.image.resize(x, [4, 4]), integers(1, 8, 8, 3, low=0, high=255, dtype=np.uint8)),
    "im_resize_pa": (lambda x: tf.image.resize(x, [4, 6], preserve_aspect_ratio=True), IMAGE),
    "im_ssim_ms": (
        lambda x: tf.image.ssim_multiscale(x, x * 0.9, 1.0, power_factors=[0.5, 0.5], filter_size=3),
        numbers(1, 16, 16, 3, low=0, high=1),
    ),
    "im_draw": (lambda x: tf.image.draw_bounding_boxes(x, [[[0.1, 0.1, 0.5, 0.5]]], [[1.0, 0, 0]]), IMAGE),
    "im_nms_comb": (
        lambda b, q: tf.image.combined_non_max_suppression(b[None, :, None], q[None], 3, 5),
        np.sort(numbers(6, 4), 1),
        numbers(6, 2, low=0, high=1),
    ),
    "im_glimpse": (lambda x: tf.image.extract_glimpse(x, [3, 3], [[0.1, 0.2]]), IMAGE),
    "im_translate": (
        lambda x: tf.raw_ops.ImageProjectiveTransformV3(
            images=x,
            transforms=[[1.0, 0, -1, 0, 1, 2, 0, 0]],
            output_shape=[8, 8],
            fill_value=0.0,
            interpolation="BILINEAR",
        ),
        IMAGE,
    ),
    "im_proj_near": (
        lambda x: tf.raw_ops.ImageProjectiveTransformV3(
            images=x,
            transforms=[[0.9, 0.1, -1, 0, 1.1, 2, 0, 0]],
            output_shape=[8, 8],
            fill_value=0.0,
            fill_mode="REFLECT",
            interpolation="NEAREST",
        ),
        IMAGE,
    ),
    "im_median": (
        lambda x: tf.reduce_max(tf.image.extract_patches(x, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), -1),
        IMAGE,
    ),
    "im_crop_near": (
        lambda x: tf.image.crop_and_resize(x, [[0.0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9]], [0, 0], [4, 5], method="nearest"),
        IMAGE,
    ),
    "im_grad_l": (lambda x: tf.image.image_gradients(x)[0], IMAGE),
}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
