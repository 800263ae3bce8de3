"""scikit-learn to ONNX: a rule for each estimator, written in ONNX's standard ops."""
