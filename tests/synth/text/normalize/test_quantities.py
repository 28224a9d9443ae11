"""Money, measures, per cent, fractions."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("$3.50", "three dollars and fifty cents"),
        ("$1.01", "one dollar and one cent"),
        ("$0.99 and $.99", "ninety-nine cents and ninety-nine cents"),
        ("-$5, $-5", "minus five dollars, minus five dollars"),
        ("$3.5M, $2 billion, €3bn", "three point five million dollars, two billion dollars, three billion euros"),
        ("$1,234.56", "one thousand two hundred thirty-four dollars and fifty-six cents"),
        ("$1.234", "one point two three four dollars"),
        ("22,1 € and 5€", "twenty-two euros and ten cents and five euros"),
        ("US$5, 5 USD, EUR 20", "five dollars, five dollars, twenty euros"),
        ("$5-$10", "five dollars to ten dollars"),
        ("50¢, £2.01, ¥500", "fifty cents, two pounds and one penny, five hundred yen"),
        ("the € is up, the $ too", "the euro is up, the dollar too"),
        ("3 km/h", "three kilometers per hour"),
        ("98.6°F, -5 °C, 90°", "ninety-eight point six degrees Fahrenheit, minus five degrees Celsius, ninety degrees"),
        ("36.5℃", "thirty-six point five degrees Celsius"),
        ("5GB, 1 MB", "five gigabytes, one megabyte"),
        ("5㎏", "five kilograms"),
        ("5 m², m²", "five square meters, m squared"),
        ("1 ft, 6 ft", "one foot, six feet"),
        ("a 5-km run", "a five kilometer run"),
        ("20%, 0.5 %, 10-20%", "twenty percent, zero point five percent, ten to twenty percent"),
        ("½ cup, 2½ cups, 1 1/2 cups", "one half cup, two and a half cups, one and a half cups"),
        ("3/4, 2/3, 1/100", "three quarters, two thirds, one one hundredth"),
        ("24/7 and 100/3", "twenty-four seven and one hundred slash three"),
        ("5'11\"", "five foot eleven"),
        ("1920x1080, 3 × 4", "one thousand nine hundred twenty by one thousand eighty, three times four"),
        ("3.5M users, 10k", "three point five million users, ten thousand"),
        ("1.000.000", "one million"),
        ("5 in a row, 5 a day", "five in a row, five a day"),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken
