"""The exceptions Onward raises on purpose: each message names the problem and what to do next."""


class OnwardError(Exception):
    """Base class. The message is one line, whatever names from a file it quotes; the command line exits with code 2."""

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(str(message).split()))


class InvalidModelError(OnwardError):
    """The file or object given is not a valid model."""


class UntrustedError(OnwardError):
    """Something in the file would be executed when it is opened, and the user did not say that it may be."""


class InvalidDataError(OnwardError):
    """The inputs given for a model cannot be read, or are not what it takes."""


class UnsupportedError(OnwardError):
    """The model is valid, but a part of it cannot be expressed by the chosen backend."""


class MissingPackageError(UnsupportedError):
    """A framework that is needed is not installed; the message says what to install."""


class ConversionError(OnwardError):
    """A step of a conversion failed: a defect of Onward, or of a plugin."""


class VerificationError(OnwardError):
    """The converted model does not compute what the original computes."""


class WritingError(OnwardError):
    """The file system refuses what is written: the disk is full, or the place is read-only. What was there stays."""


class RunFailure(OnwardError):
    """A runtime could not run a model: it refused, crashed, took too long or needed too much memory."""


class OddModelWarning(UserWarning):
    """A file says something that cannot be meant, and that no other reader minds: it was read without that."""


class LeftOutWarning(UserWarning):
    """A part of a model, or two models as one, cannot hold all that the file did: the message says what is left out."""


class NotVerifiedWarning(UserWarning):
    """A conversion is done, but not proven: the original could not be run, or differs as the user asked for."""


class RuntimeDiffersWarning(UserWarning):
    """A conversion is right by the reference evaluator of the onnx package; ONNX Runtime computes something else."""


class NothingSavedWarning(UserWarning):
    """What was asked for to save memory would save none in this model, and is left out."""
