"""What can go wrong with ChatTTS, as types a caller can tell apart.

ChatTTSError
+-- WeightsError       files of the operator's directory are missing or not what they should be
+-- SpeakerError       a speaker string that is none, or a random voice without statistics
+-- TextTooLong        a segment that does not fit a slot
+-- EmptySpeech        the model ended before its first sound, on every try
+-- DeviceError        the device is not there, or not of the kind a graph was built for
|   +-- OutOfMemory    it has too little memory for the slots asked for
+-- BuildError         TensorRT refused a graph or a flag
+-- ProfileError       a shape outside the profiles an engine was built with
"""


class ChatTTSError(Exception):
    """Base of all of them."""


class WeightsError(ChatTTSError):
    """`problems` names every file and tensor that is wrong, one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class SpeakerError(ChatTTSError, ValueError):
    pass


class TextTooLong(ChatTTSError, ValueError):
    pass


class DeviceError(ChatTTSError):
    pass


class OutOfMemory(DeviceError):
    pass


class BuildError(ChatTTSError):
    pass


class ProfileError(ChatTTSError):
    pass
