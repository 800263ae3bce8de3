"""Cases of the battery that are refused, each with the reason; that one converts after all is a failure too."""

REFUSED = {
    "bessel_i0e": "no rule for a Bessel function",
    "bessel_i1e": "no rule for a Bessel function",
    "bitcast": "ONNX has bit casts since opset 26",
    "eigvalsh": "eigenvalues take steps whose number no shape tells",
    "igamma": "no rule for the incomplete gamma function",
    "nextafter": "ONNX has bit casts since opset 26",
    "pinv": "singular values take steps whose number no shape tells",
    "rfft": "ONNX Runtime has no complex numbers to hand out",
    "string_length": "ONNX has no op for it",
    "substr": "ONNX has no op for it",
    "svd_values": "singular values take steps whose number no shape tells",
    "zeta": "no rule for the zeta function",
}
