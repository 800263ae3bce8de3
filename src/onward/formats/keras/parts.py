"""The parts of Keras that a file may name without being trusted: they compute, and do nothing else.

What is not listed is refused, as it may hold code (`Lambda`, `JaxLayer`, `FlaxLayer`, `TorchModuleWrapper`), open
other files (`TFSMLayer`), run any op of TensorFlow (`TensorFlowOpLayer`), or do what only later versions of Keras know.
"""

from __future__ import annotations

import re

LAYERS = """
AbstractRNNCell Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention AugMix AutoContrast
Average BatchNormalization BatchNormalizationV1 Bidirectional CategoryEncoding CenterCrop Concatenate
ContrastLimitedAdaptiveHistogramEqualization ConvLSTM1D ConvLSTM1DCell ConvLSTM2D ConvLSTM2DCell ConvLSTM3D
ConvLSTM3DCell ConvLSTMCell CuDNNGRU CuDNNLSTM CustomScaleLayer CutMix Dense Discretization Dot Dropout ELU
EinsumDense Embedding Equalization Flatten GRU GRUCell GaussianDropout GaussianNoise GroupNormalization
GroupQueryAttention GroupedQueryAttention HashedCrossing Hashing Identity IndexLookup InputLayer IntegerLookup LSTM
LSTMCell Layer LayerNormalization LayerScale LeakyReLU LocallyConnected1D LocallyConnected2D Masking
MaxNumBoundingBoxes Maximum MelSpectrogram Minimum MixUp MultiHeadAttention Multiply Normalization PReLU Permute
Pipeline RMSNormalization RNN RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast
RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHeight RandomHue
RandomInvert RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear
RandomTranslation RandomWidth RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding
STFTSpectrogram SimpleRNN SimpleRNNCell SlicingOpLambda Softmax Solarization SpectralNormalization StackedRNNCells
StochasticDepth StringLookup Subtract SyncBatchNormalization TFOpLambda TextVectorization ThresholdedReLU
TimeDistributed UnitNormalization Wrapper
"""
OF_DIMENSIONS = """
AdaptiveAveragePooling AdaptiveMaxPooling AveragePooling AvgPool Conv Convolution Cropping DepthwiseConv
GlobalAveragePooling GlobalAvgPool GlobalMaxPool GlobalMaxPooling MaxPool MaxPooling SeparableConv
SeparableConvolution SpatialDropout UpSampling ZeroPadding
"""
"""Layers for 1D, 2D and 3D; convolutions may be transposed."""
MODELS = "Functional Model Sequential"
INITIALIZERS = """
Constant GlorotNormal GlorotNormalV2 GlorotUniform GlorotUniformV2 HeNormal HeNormalV2 HeUniform HeUniformV2
IdentityInitializer Initializer LecunNormal LecunNormalV2 LecunUniform LecunUniformV2 Ones OnesV2 Orthogonal
OrthogonalInitializer OrthogonalV2 RandomNormal RandomNormalV2 RandomUniform RandomUniformV2 STFT STFTInitializer
TruncatedNormal TruncatedNormalV2 VarianceScaling VarianceScalingV2 Zeros ZerosV2
"""
RULES_FOR_WEIGHTS = """
Constraint L1 L1L2 L2 MaxNorm MinMaxNorm NonNeg OrthogonalRegularizer RadialConstraint Regularizer UnitNorm
"""
LOSSES = """
BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
CategoricalGeneralizedCrossEntropy CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLDivergence LogCosh Loss
LossFunctionWrapper MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson
SparseCategoricalCrossentropy SquaredHinge Tversky
"""
METRICS = """
AUC Accuracy BinaryAccuracy BinaryIoU CategoricalAccuracy ConcordanceCorrelation F1Score FBetaScore FalseNegatives
FalsePositives IoU LogCoshError Mean MeanIoU MeanMetricWrapper MeanRelativeError MeanTensor Metric OneHotIoU
OneHotMeanIoU PearsonCorrelation Precision PrecisionAtRecall R2Score Recall RecallAtPrecision RootMeanSquaredError
SensitivityAtSpecificity SparseCategoricalAccuracy SparseTopKCategoricalAccuracy SpecificityAtSensitivity Sum
SumOverBatchSize SumOverBatchSizeMetricWrapper TopKCategoricalAccuracy TrueNegatives TruePositives
"""
OPTIMIZERS = """
Adadelta Adafactor Adagrad Adam AdamW Adamax CosineDecay CosineDecayRestarts ExponentialDecay Ftrl InverseTimeDecay
Lamb LearningRateSchedule Lion LossScaleOptimizer MultiOptimizer Muon Nadam Optimizer OptimizerMap
PiecewiseConstantDecay PolynomialDecay RMSprop SGD ScheduleFreeAdamW
"""
NUMBERS = """
AWQConfig AWQDTypePolicy AbsMaxQuantizer DTypePolicy DTypePolicyMap Float8QuantizationConfig FloatDTypePolicy GPTQConfig
GPTQDTypePolicy Int4DTypePolicy Int4QuantizationConfig Int8QuantizationConfig Policy PolicyV1 QuantizationConfig
QuantizedDTypePolicy QuantizedFloat8DTypePolicy Quantizer SeedGenerator
"""
VALUES = "TensorShape __bytes__ __ellipsis__ __keras_tensor__ __numpy__ __slice__ __tensor__ __tuple__"
"""What plain values are written as."""

CLASSES = frozenset(
    " ".join([LAYERS, MODELS, INITIALIZERS, RULES_FOR_WEIGHTS, LOSSES, METRICS, OPTIMIZERS, NUMBERS, VALUES]).split()
    + [f"{name}{n}D{form}" for name in OF_DIMENSIONS.split() for n in (1, 2, 3) for form in ("", "Transpose")]
)
LOWERED = frozenset(name.lower() for name in OPTIMIZERS.split())
"""Keras reads the names of optimizers so, too."""
_FUNCTIONS = """
binary_accuracy binary_crossentropy binary_focal_crossentropy categorical_accuracy categorical_crossentropy
categorical_focal_crossentropy categorical_generalized_cross_entropy categorical_hinge celu circle
concordance_correlation cosine_similarity ctc dice elu exponential gelu glu hard_shrink hard_sigmoid hard_silu
hard_swish hard_tanh hinge huber kl_divergence kullback_leibler_divergence leaky_relu linear log_cosh log_sigmoid
log_softmax logcosh mean_absolute_error mean_absolute_percentage_error mean_squared_error
mean_squared_logarithmic_error mish pearson_correlation poisson relu relu6 selu sigmoid silu soft_shrink softmax
softplus softsign sparse_categorical_accuracy sparse_categorical_crossentropy sparse_plus sparse_sigmoid
sparse_top_k_categorical_accuracy sparsemax squared_hinge squareplus swish tanh tanh_shrink threshold
top_k_categorical_accuracy tversky
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Activations, losses and metrics."""
OPS = re.compile(r"keras\.src\.ops\.(core|einops|image|linalg|math|nn|numpy)")
"""Modules all of whose classes are ops of Keras: they compute."""
OWN = re.compile(r"(tf_)?keras(\.\w+)*|builtins")
"""Modules of Keras; functions of theirs are said to be built in."""
_OPS = """
argsort broadcast_to cast clip_by_value concat convert_to_tensor cumsum einsum expand_dims fill gather gather_nd
identity meshgrid norm one_hot ones ones_like pad range rank repeat reshape reverse roll shape size slice sort split
squeeze stack stop_gradient strided_slice tensordot tile transpose unstack where zeros zeros_like
"""
OPS_OF_TENSORFLOW = re.compile(
    r"(compat\.v1\.)?((__operators__|bitwise|image|linalg|math|nn|random|signal|strings)(\.\w+)+"
    rf"|{'|'.join(_OPS.split())})"
)
"""What `TFOpLambda` may call: functions of TensorFlow that compute."""
