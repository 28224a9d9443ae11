from voxgate.gateway.cli.quality.asr import word_error_rate


def test_spelling_case_and_numbers_make_no_difference():
    assert word_error_rate("It costs $3.50, Mr. Smith!", "it costs three dollars and fifty cents mister smith") == 0


def test_errors_are_counted_by_words_said():
    assert word_error_rate("the old man climbed", "the cold man") == 0.5
