"""Convolutions, pools, normalisations, images and signals."""

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

IMAGE = numbers(2, 8, 9, 3, low=0, high=1)
FIRST = numbers(2, 3, 8, 9)
K = numbers(3, 3, 3, 4, seed=1)
D = numbers(3, 3, 3, 2, seed=1)
V = numbers(1, 5, 6, 7, 2)
S = numbers(2, 64)

STATIC = {
    "conv2d_same": (lambda x: tf.nn.conv2d(x, K, 1, "SAME"), IMAGE),
    "conv2d_valid_stride": (lambda x: tf.nn.conv2d(x, K, 2, "VALID"), IMAGE),
    "conv2d_same_stride": (lambda x: tf.nn.conv2d(x, K, 2, "SAME"), IMAGE),
    "conv2d_explicit": (lambda x: tf.nn.conv2d(x, K, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]), IMAGE),
    "conv2d_dilated": (lambda x: tf.nn.conv2d(x, K, 1, "SAME", dilations=2), IMAGE),
    "conv2d_grouped": (lambda x: tf.nn.conv2d(x, numbers(3, 3, 1, 6), 1, "SAME"), IMAGE),
    "conv1d": (lambda x: tf.nn.conv1d(x, numbers(3, 9, 4), 1, "SAME"), IMAGE[:, :, :, 0]),
    "conv3d": (lambda x: tf.nn.conv3d(x, numbers(2, 2, 2, 2, 3), [1, 1, 2, 1, 1], "SAME"), V),
    "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, D, [1, 2, 2, 1], "SAME"), IMAGE),
    "depthwise_dilated": (lambda x: tf.nn.depthwise_conv2d(x, D, [1, 1, 1, 1], "VALID", dilations=[2, 2]), IMAGE),
    "separable": (lambda x: tf.nn.separable_conv2d(x, D, numbers(1, 1, 6, 4), [1, 1, 1, 1], "SAME"), IMAGE),
    "conv2d_transpose": (lambda x: tf.nn.conv2d_transpose(x, numbers(3, 3, 5, 3), [2, 16, 18, 5], 2, "SAME"), IMAGE),
    "conv2d_transpose_valid": (
        lambda x: tf.nn.conv2d_transpose(x, numbers(3, 3, 5, 3), [2, 18, 20, 5], 2, "VALID"),
        IMAGE,
    ),
    "conv3d_transpose": (lambda x: tf.nn.conv3d_transpose(x, numbers(2, 2, 2, 3, 2), [1, 10, 12, 14, 3], 2, "SAME"), V),
    "dilation2d": (lambda x: tf.nn.dilation2d(x, numbers(2, 2, 3), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), IMAGE),
    "max_pool": (lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), IMAGE),
    "max_pool_same": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGE),
    "max_pool_argmax": (lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID"), IMAGE),
    "avg_pool": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGE),
    "avg_pool3d": (lambda x: tf.nn.avg_pool3d(x, 2, 2, "VALID"), V),
    "max_pool3d": (lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), V),
    "pool1d": (lambda x: tf.nn.max_pool1d(x, 2, 2, "VALID"), IMAGE[:, :, :, 0]),
    "batch_norm": (
        lambda x: tf.compat.v1.nn.fused_batch_norm(
            x,
            tf.ones(3),
            tf.zeros(3),
            mean=tf.constant([0.1, 0.2, 0.3]),
            variance=tf.constant([1.0, 2.0, 3.0]),
            is_training=False,
        )[0],
        IMAGE,
    ),
    "batch_norm_training": (
        lambda x: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(3), tf.zeros(3), is_training=True),
        IMAGE,
    ),
    "batch_normalization": (
        lambda x: tf.nn.batch_normalization(x, tf.constant([0.1, 0.2, 0.3]), tf.ones(3), tf.zeros(3), None, 1e-3),
        IMAGE,
    ),
    "lrn": (lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 0.1, 0.75), IMAGE),
    "resize_bilinear": (lambda x: tf.image.resize(x, [16, 12]), IMAGE),
    "resize_nearest": (lambda x: tf.image.resize(x, [5, 20], "nearest"), IMAGE),
    "resize_bicubic": (lambda x: tf.image.resize(x, [11, 13], "bicubic"), IMAGE),
    "resize_area": (lambda x: tf.image.resize(x, [4, 3], "area"), IMAGE),
    "resize_area_up": (lambda x: tf.image.resize(x, [13, 14], "area"), IMAGE),
    "resize_lanczos3": (lambda x: tf.image.resize(x, [4, 5], "lanczos3"), IMAGE),
    "resize_lanczos5": (lambda x: tf.image.resize(x, [12, 7], "lanczos5"), IMAGE),
    "resize_gaussian": (lambda x: tf.image.resize(x, [4, 5], "gaussian"), IMAGE),
    "resize_mitchell": (lambda x: tf.image.resize(x, [12, 5], "mitchellcubic"), IMAGE),
    "resize_antialias": (lambda x: tf.image.resize(x, [4, 4], antialias=True), IMAGE),
    "resize_v1": (lambda x: tf.compat.v1.image.resize_bilinear(x, [16, 12]), IMAGE),
    "resize_v1_corners": (lambda x: tf.compat.v1.image.resize_bilinear(x, [16, 12], align_corners=True), IMAGE),
    "resize_v1_nearest_corners": (
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, [16, 12], align_corners=True),
        IMAGE,
    ),
    "resize_v1_bicubic": (lambda x: tf.compat.v1.image.resize_bicubic(x, [16, 12]), IMAGE),
    "resize_with_pad": (lambda x: tf.image.resize_with_pad(x, 12, 12), IMAGE),
    "crop_and_resize": (
        lambda x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.9, 0.8], [0.0, 0.0, 1.2, 1.0]], [1, 0], [4, 5]),
        IMAGE,
    ),
    "central_crop": (lambda x: tf.image.central_crop(x, 0.5), IMAGE),
    "crop_to_bounding_box": (lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 4, 5), IMAGE),
    "flip": (tf.image.flip_left_right, IMAGE),
    "rot90": (tf.image.rot90, IMAGE),
    "rgb_to_grayscale": (tf.image.rgb_to_grayscale, IMAGE),
    "rgb_to_hsv": (tf.image.rgb_to_hsv, IMAGE),
    "hsv_to_rgb": (tf.image.hsv_to_rgb, IMAGE),
    "rgb_to_yuv": (tf.image.rgb_to_yuv, IMAGE),
    "adjust_brightness": (lambda x: tf.image.adjust_brightness(x, 0.2), IMAGE),
    "adjust_contrast": (lambda x: tf.image.adjust_contrast(x, 1.5), IMAGE),
    "adjust_saturation": (lambda x: tf.image.adjust_saturation(x, 0.5), IMAGE),
    "adjust_hue": (lambda x: tf.image.adjust_hue(x, 0.1), IMAGE),
    "per_image_standardization": (tf.image.per_image_standardization, IMAGE),
    "convert_image_dtype": (
        lambda x: tf.image.convert_image_dtype(x, tf.float32),
        integers(2, 4, 4, 3, low=0, high=255, dtype=np.uint8),
    ),
    "image_gradients": (tf.image.image_gradients, IMAGE),
    "sobel": (tf.image.sobel_edges, IMAGE),
    "total_variation": (tf.image.total_variation, IMAGE),
    "psnr": (lambda x: tf.image.psnr(x, x * 0.9, 1.0), IMAGE),
    "ssim": (lambda x: tf.image.ssim(x, x * 0.9, 1.0, filter_size=5), IMAGE),
    "nms": (
        lambda boxes: tf.image.non_max_suppression(boxes, tf.constant([0.9, 0.8, 0.7, 0.3]), 3, 0.5, 0.35),
        np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [5, 5, 6, 6]]),
    ),
    "rfft": (tf.signal.rfft, S),
    "rfft_abs": (lambda x: tf.abs(tf.signal.rfft(x)), S),
    "rfft_length": (lambda x: tf.abs(tf.signal.rfft(x, [32])), S),
    "fft_roundtrip": (lambda x: tf.math.real(tf.signal.ifft(tf.signal.fft(tf.cast(x, tf.complex64)))), S),
    "irfft": (lambda x: tf.signal.irfft(tf.signal.rfft(x) * tf.cast(2.0, tf.complex64)), S),
    "fft2d": (lambda x: tf.abs(tf.signal.fft2d(tf.cast(x, tf.complex64))), numbers(2, 8, 8)),
    "stft": (lambda x: tf.abs(tf.signal.stft(x, 16, 8)), S),
    "inverse_stft": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8), S),
    "frame": (lambda x: tf.signal.frame(x, 16, 8), S),
    "overlap_and_add": (lambda x: tf.signal.overlap_and_add(tf.signal.frame(x, 16, 8), 8), S),
    "dct": (lambda x: tf.signal.dct(x), S),
    "mfcc": (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x), S),
    "mel": (lambda x: tf.matmul(tf.abs(tf.signal.rfft(x)), tf.signal.linear_to_mel_weight_matrix(10, 33, 8000)), S),
    "hann": (lambda x: x * tf.signal.hann_window(64), S),
    "complex_parts": (lambda x: tf.math.imag(tf.complex(x, 2 * x) * tf.complex(x, -x)), S),
    "angle": (lambda x: tf.math.angle(tf.complex(x, 2 * x)), S),
}

DYNAMIC = {
    "conv2d_dynamic": (lambda x: tf.nn.conv2d(tf.ensure_shape(x, [None, None, None, 3]), K, 2, "SAME"), IMAGE),
    "conv2d_nchw_dynamic": (
        lambda x: tf.transpose(
            tf.nn.conv2d(tf.transpose(tf.ensure_shape(x, [None, 3, None, None]), [0, 2, 3, 1]), K, 1, "VALID"),
            [0, 3, 1, 2],
        ),
        FIRST,
    ),
    "resize_by_size": (
        lambda x: tf.image.resize(tf.ensure_shape(x, [None, None, None, 3]), 2 * tf.shape(x)[1:3]),
        IMAGE,
    ),
    "max_pool_dynamic": (lambda x: tf.nn.max_pool2d(tf.ensure_shape(x, [None, None, None, 3]), 3, 2, "SAME"), IMAGE),
    "global_pool_dynamic": (lambda x: tf.reduce_mean(x, [1, 2]), IMAGE),
}

CASES = cases(STATIC, static=True) + cases(DYNAMIC)
