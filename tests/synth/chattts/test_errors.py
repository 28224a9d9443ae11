from voxgate.synth.chattts.errors import ChatTTSError, DeviceError, OutOfMemory, TextTooLong, WeightsError


def test_all_that_is_wrong_with_weights_is_in_one_error():
    error = WeightsError(["a is missing", "b is too short"])

    assert str(error) == "a is missing; b is too short"
    assert error.problems == ["a is missing", "b is too short"]


def test_callers_can_tell_a_text_from_a_device():
    assert issubclass(TextTooLong, ValueError)
    assert issubclass(OutOfMemory, DeviceError)
    assert not issubclass(OutOfMemory, ValueError)
    assert issubclass(TextTooLong, ChatTTSError)
