"""XGBoost and LightGBM to ONNX."""
