"""English number words: cardinals of any size, ordinals, years, decimals, digits one by one."""

import re

ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SCALES = ("", "thousand", "million", "billion", "trillion")
MOST_DIGITS = 15  # longer ones are read digit by digit: nobody counts in quadrillions
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_ORDINALS |= {"twelve": "twelfth"}

# Possessive: matched in linear time whatever follows. Thousands separators are commas and stand every three digits.
NUMBER = r"(?:\d{1,3}(?:,\d{3})++(?![\d])|\d++)(?:\.\d++)?(?!\.\d)"
ROMAN = re.compile(r"(?=[IVXLC])(X{0,3}|XL|L)(IX|IV|V?I{0,3})\Z")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def cardinal(number: int | str) -> str:
    """ "one hundred twenty-three"; digit by digit when it is longer than `MOST_DIGITS`."""
    text = str(number).lstrip("0") or "0"
    if len(text) > MOST_DIGITS:
        return digits(text)
    value = int(text)
    if value < 1000:
        return _below_1000(value)
    groups: list[str] = []
    scale = 0
    while value:
        value, group = divmod(value, 1000)
        if group:
            groups.append(f"{_below_1000(group)} {SCALES[scale]}".rstrip())
        scale += 1
    return " ".join(reversed(groups))


def ordinal(number: int | str) -> str:
    if len(str(number).lstrip("0")) > MOST_DIGITS:
        return digits(str(number)) + " th"
    head, hyphen, last = cardinal(number).rpartition("-")
    if not hyphen:
        head, hyphen, last = cardinal(number).rpartition(" ")
    last = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return head + hyphen + last


def year(number: int) -> str:
    """ "nineteen eighty-four", "two thousand five", "twenty twenty-five"."""
    high, low = divmod(number, 100)
    if high % 10 == 0 and low < 10:
        return cardinal(number)
    if low == 0:
        return cardinal(high) + " hundred"
    return f"{cardinal(high)} oh {ONES[low]}" if low < 10 else f"{cardinal(high)} {cardinal(low)}"


def is_year(text: str) -> bool:
    return len(text) == 4 and text.isdecimal() and "1100" <= text <= "2099"


def digits(text: str) -> str:
    """One by one, a pause after every three of a long row."""
    words = [ONES[int(char)] for char in text if char.isdecimal()]
    if len(words) <= 6:
        return " ".join(words)
    first = len(words) % 3 or 3
    groups = [words[:first], *(words[at : at + 3] for at in range(first, len(words), 3))]
    return ", ".join(" ".join(group) for group in groups)


def decimal(text: str) -> str:
    """ "1,234.50" as it is written: the digits after the point one by one."""
    whole, point, fraction = text.replace(",", "").partition(".")
    words = digits(whole) if len(whole) > 1 and whole[0] == "0" else cardinal(whole) if whole else ""
    if not point or not fraction:
        return words
    return f"{words} point {' '.join(ONES[int(char)] for char in fraction)}".lstrip()


def plain(text: str) -> str:
    """A number that stands alone: a year if it can be one, digits if it begins with a zero."""
    return year(int(text)) if is_year(text) else decimal(text)


def code_digits(text: str) -> str:
    """Digits inside a code such as "A380" or "GPT-4"."""
    if is_year(text):
        return year(int(text))
    if len(text) == 3 and text[0] != "0" and text[1] != "0":
        return f"{ONES[int(text[0])]} {cardinal(text[1:])}"
    return cardinal(text) if (len(text) < 3 and text[0] != "0") or text == "0" else digits(text)


def roman(text: str) -> int:
    """0 when `text` is no Roman numeral under forty or so."""
    if not text or not ROMAN.match(text):
        return 0
    values = [_ROMAN_DIGITS[char] for char in text]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


def _below_1000(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{ONES[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        tens, ones = divmod(rest, 10)
        words.append(f"{TENS[tens]}-{ONES[ones]}" if ones else TENS[tens])
    elif rest or not words:
        words.append(ONES[rest])
    return " ".join(words)
