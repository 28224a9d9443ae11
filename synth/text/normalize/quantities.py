"""English amounts: money, measures, per cent, fractions, as patterns and what is said for a match.

Knows one match at a time; where it stands in the text is the reader's (english.py).
"""

import re

from . import numbers
from .numbers import NUMBER, ONES, cardinal, decimal

# singular, plural, hundredth, hundredths
_CURRENCIES: dict[str, tuple[str, str, str, str]] = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₪": ("shekel", "shekels", "agora", "agorot"),
    "₺": ("lira", "lira", "kurus", "kurus"),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "₫": ("dong", "dong", "", ""),
    "₴": ("hryvnia", "hryvnias", "", ""),
    "₱": ("peso", "pesos", "centavo", "centavos"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "¢": ("cent", "cents", "", ""),
}
_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "CHF": "CHF", "RUB": "₽"}
_CODES |= {"US$": "$", "C$": "$", "A$": "$", "CA$": "$", "AU$": "$", "NZ$": "$", "HK$": "$"}
_SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion", "t": "trillion"}
_SCALE = r"(?: ?(?P<scale>hundred|thousand|million|billion|trillion|bn|mn|[kKmMbBT])(?![\w°/]))?"
SIGNS = "".join(sign for sign in _CURRENCIES if len(sign) == 1)
_SIGN = rf"(?:[{SIGNS}]|CHF|USD|EUR|GBP|JPY|INR|RUB|(?:US|C|A|CA|AU|NZ|HK)\$)"

MONEY = re.compile(rf"(?P<minus>[-−])?(?P<sign>{_SIGN}) ?(?P<minus2>[-−])?(?P<number>{NUMBER}|\.\d+){_SCALE}")
MONEY_AFTER = re.compile(
    rf"(?P<number>\d+,\d\d?(?![\d,])|{NUMBER}){_SCALE} ?(?P<sign>[{SIGNS}]|CHF|USD|EUR|GBP|JPY)(?!\w)"
)

_UNITS = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "µm": "micrometer", "nm": "nanometer",
    "mi": "mile", "ft": "foot", "yd": "yard", "in": "inch", "kg": "kilogram", "g": "gram", "mg": "milligram",
    "µg": "microgram", "lb": "pound", "lbs": "pound", "oz": "ounce", "t": "ton", "l": "liter", "L": "liter",
    "ml": "milliliter", "mL": "milliliter", "cl": "centiliter", "gal": "gallon", "h": "hour", "hr": "hour",
    "hrs": "hour", "min": "minute", "mins": "minute", "s": "second", "sec": "second", "secs": "second",
    "ms": "millisecond", "µs": "microsecond", "ns": "nanosecond", "yr": "year", "yrs": "year",
    "KB": "kilobyte", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte",
    "PB": "petabyte", "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "Kb": "kilobit", "Mb": "megabit",
    "Gb": "gigabit", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "W": "watt",
    "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt", "kWh": "kilowatt hour", "Wh": "watt hour", "V": "volt",
    "mV": "millivolt", "kV": "kilovolt", "A": "amp", "mA": "milliamp", "mAh": "milliamp hour", "Ω": "ohm",
    "J": "joule", "kJ": "kilojoule", "cal": "calorie", "kcal": "kilocalorie", "N": "newton", "Pa": "pascal",
    "hPa": "hectopascal", "kPa": "kilopascal", "psi": "P S I", "dB": "decibel", "px": "pixel", "pt": "point",
    "fps": "frames per second", "rpm": "R P M", "mph": "miles per hour", "kmh": "kilometers per hour",
    "kph": "kilometers per hour", "Mbps": "megabits per second", "Gbps": "gigabits per second",
    "kbps": "kilobits per second", "ppm": "parts per million", "ha": "hectare", "ac": "acre",
    "mol": "mole", "lm": "lumen", "sqft": "square foot", "sq ft": "square foot",
}  # fmt: skip
_UNCHANGED = frozenset(["hertz", "kilohertz", "megahertz", "gigahertz", "kelvin"])
_PLURALS = {"foot": "feet", "inch": "inches", "square foot": "square feet"}
_unit = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
MEASURE = re.compile(
    rf"(?P<number>\d+,\d\d?(?![\d,])|{NUMBER})(?P<gap>[ -]?)(?P<unit>{_unit})(?P<power>[²³])?"
    rf"(?:/(?P<per>{_unit}|day|week|month|year)(?P<per_power>[²³])?)?(?![\w°])"
)
_WORDS = frozenset(("A", "N", "s", "t", "in", "l", "J", "pt", "ac"))  # after a space: "5 in a row", "5 A grades"
RATE = re.compile(r"(?P<unit>km|m|mi|l|L|MB|GB|kB|Mb|Gb|kg|ft)/(?P<per>h|hr|s|sec|min|day|km)(?!\w)")
DEGREES = re.compile(rf"(?P<number>\d+,\d\d?(?![\d,])|{NUMBER}) ?(?:°|º) ?(?P<scale>[CFKNSEW](?!\w))?")
_SCALE_NAMES = {
    "C": " Celsius",
    "F": " Fahrenheit",
    "K": " Kelvin",
    "N": " north",
    "S": " south",
    "E": " east",
    "W": " west",
}
PERCENT = re.compile(rf"(?P<number>\d+,\d\d?(?![\d,])|{NUMBER}) ?(?P<sign>[%‰])")
SCALED = re.compile(rf"(?P<number>{NUMBER})(?P<gap> ?)(?P<scale>million|billion|trillion|bn|mn|[kKMB])(?!\w)")
GROUPED = re.compile(r"\d{1,3}(?:\.\d{3}){2,5}(?!\d|\.\d)")  # 1.000.000
EUROPEAN = re.compile(r"(?<![,\d])(\d+),(\d\d?)(?![\d,])(?!\.\d)")
FEET = re.compile(r"(\d{1,2})['′] ?(\d{1,2})(?:\"|″|'')?(?!\d)")
DIMENSIONS = re.compile(rf"(?P<number>{NUMBER})(?P<gap> ?)(?P<by>[xX×])(?= ?\d)")

VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
MIXED = re.compile(rf"(?P<whole>\d{{1,6}}) ?(?P<vulgar>[{''.join(VULGAR)}])")
MIXED_SLASH = re.compile(r"(?P<whole>\d{1,4})[ -](?P<top>\d{1,2})/(?P<bottom>[2-9]|1[06]|32|64|100)(?![\w/.])")
FRACTION = re.compile(r"(?<![/])(\d{1,3})[/⁄](\d{1,4})(?![\w/⁄]|\.\d)")
_READ_AS_PAIR = frozenset([("24", "7"), ("9", "11"), ("50", "50"), ("20", "20")])


def money(match: re.Match[str]) -> str:
    sign = match["sign"]
    one, many, cent, cents = _CURRENCIES[_CODES.get(sign, sign)]
    groups = match.groupdict()
    minus = "minus " if groups.get("minus") or groups.get("minus2") else ""
    number = _decimal_comma(match["number"])
    if scale := match["scale"]:
        return f"{minus}{decimal(number)} {_SCALES.get(scale.lower(), scale)} {many}"
    whole, _, fraction = number.replace(",", "").partition(".")
    if not fraction.strip("0") and len(fraction) < 3:
        return f"{minus}{decimal(whole)} {one if _is_one(whole) else many}"
    if not cent or len(fraction) > 2:
        return f"{minus}{decimal(number)} {many}"
    hundredths = int(fraction.ljust(2, "0"))
    small = f"{cardinal(hundredths)} {cent if hundredths == 1 else cents}"
    if not whole.strip("0"):
        return minus + small
    return f"{minus}{decimal(whole)} {one if _is_one(whole) else many} and {small}"


def currency(sign: str) -> str:
    return _CURRENCIES[sign][0]


def measure(match: re.Match[str]) -> str | None:
    unit = match["unit"]
    alone = match["gap"] == " " and not match["per"] and not match["power"]
    if alone and unit in _WORDS:
        return None
    if match["gap"] == "-" and len(unit) < 2:
        return None
    number = _decimal_comma(match["number"])
    name = _name(unit, match["power"], match["gap"] != "-" and not _is_one(number))
    per = f" per {_name(match['per'], match['per_power'], False)}" if match["per"] else ""
    return f"{decimal(number)} {name}{per}"


def rate(match: re.Match[str]) -> str:
    return f"{_name(match['unit'], None, True)} per {_name(match['per'], None, False)}"


def degrees(match: re.Match[str]) -> str:
    number = _decimal_comma(match["number"])
    return f"{decimal(number)} degree{'' if _is_one(number) else 's'}{_SCALE_NAMES.get(match['scale'] or '', '')}"


def percent(match: re.Match[str]) -> str:
    return f"{decimal(_decimal_comma(match['number']))} {'percent' if match['sign'] == '%' else 'per mille'}"


def scaled(match: re.Match[str]) -> str | None:
    scale = match["scale"]
    if len(scale) == 1 and (match["gap"] or match[0] in ("4K", "8K")):
        return None
    return f"{decimal(match['number'])} {_SCALES.get(scale.lower(), scale)}"


def european(match: re.Match[str]) -> str:
    return decimal(f"{match[1]}.{match[2]}")


def feet(match: re.Match[str]) -> str:
    return f"{cardinal(match[1])} foot {cardinal(match[2])}"


def dimensions(match: re.Match[str]) -> str:
    return f"{decimal(match['number'])} {'times' if match['by'] == '×' or match['gap'] else 'by'}"


def vulgar(char: str) -> str:
    return _fraction(*VULGAR[char])


def mixed(match: re.Match[str]) -> str:
    groups = match.groupdict()
    top, bottom = VULGAR[match["vulgar"]] if "vulgar" in groups else (int(match["top"]), int(match["bottom"]))
    part = _fraction(top, bottom)
    return f"{cardinal(match['whole'])} and {'a ' + part[4:] if part.startswith('one ') else part}"


def fraction(match: re.Match[str]) -> str:
    top, bottom = match[1], match[2]
    if (top, bottom) in _READ_AS_PAIR:
        return f"{cardinal(top)} {cardinal(bottom)}"
    if 0 < int(top) < int(bottom) and (int(bottom) <= 10 or bottom in ("12", "16", "32", "64", "100", "1000")):
        return _fraction(int(top), int(bottom))
    return f"{numbers.plain(top)} {'over' if '⁄' in match[0] else 'slash'} {numbers.plain(bottom)}"


def power(char: str) -> str:
    return {"²": "squared", "³": "cubed"}[char]


def _fraction(top: int, bottom: int) -> str:
    name = {2: "half", 4: "quarter"}.get(bottom) or numbers.ordinal(bottom)
    if top != 1:
        name = "halves" if bottom == 2 else name + "s"
    return f"{ONES[top] if top < 20 else cardinal(top)} {name}"


def _name(unit: str, power: str | None, many: bool) -> str:
    name = _UNITS.get(unit, unit)
    if many and name not in _UNCHANGED and not name.endswith(("second", "hour", "minute")) and " per " in name:
        many = False
    if many and not name.isupper() and " per " not in name and name not in _UNCHANGED and name[-1].islower():
        name = _PLURALS.get(name, name + "s")
    return f"{ {'²': 'square', '³': 'cubic'}[power] } {name}" if power else name


def _decimal_comma(number: str) -> str:
    whole, comma, fraction = number.rpartition(",")
    return f"{whole}.{fraction}" if comma and len(fraction) < 3 else number


def _is_one(number: str) -> bool:
    return number in ("1", "01")
