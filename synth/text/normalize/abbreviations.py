"""English abbreviations and Roman numerals, where it is safe to say what they stand for."""

import re

from .numbers import cardinal, ordinal, roman

_TITLES = {  # before a name
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor", "St": "Saint", "Mt": "Mount",
    "Ft": "Fort", "Gen": "General", "Gov": "Governor", "Sen": "Senator", "Rep": "Representative", "Capt": "Captain",
    "Lt": "Lieutenant", "Col": "Colonel", "Sgt": "Sergeant", "Cmdr": "Commander", "Rev": "Reverend",
    "Hon": "Honorable", "Pres": "President", "Cpl": "Corporal", "Maj": "Major", "Adm": "Admiral", "Messrs": "Messieurs",
}  # fmt: skip
_ANYWHERE = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz",
    "Jr": "Junior", "Sr": "Senior", "St": "Street", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Hwy": "Highway",    "Pkwy": "Parkway", "Apt": "Apartment", "Bldg": "Building", "Ltd": "Limited",
    "Inc": "Incorporated",
    "Corp": "Corporation", "Bros": "Brothers", "Dept": "Department", "Univ": "University", "Assn": "Association",
    "Govt": "Government", "Dr": "Drive", "approx": "approximately", "Approx": "Approximately", "est": "established",
    "vs": "versus", "cf": "compare", "etc": "et cetera", "viz": "namely", "incl": "including", "excl": "excluding",
    "max": "maximum", "min": "minimum", "avg": "average", "dept": "department", "tel": "telephone", "Tel": "Telephone",
    "ext": "extension", "Ext": "Extension", "misc": "miscellaneous", "temp": "temperature", "e.g": "for example",
    "E.g": "For example", "i.e": "that is", "I.e": "That is", "a.k.a": "also known as", "et al": "et al",
    "Jan": "January", "Feb": "February", "Apr": "April", "Aug": "August", "Sep": "September", "Sept": "September",
    "Oct": "October", "Nov": "November", "Dec": "December", "Mon": "Monday", "Tue": "Tuesday", "Tues": "Tuesday",
    "Wed": "Wednesday", "Thu": "Thursday", "Thurs": "Thursday", "Fri": "Friday", "Prof": "Professor",
    "Capt": "Captain", "Gov": "Governor", "Gen": "General", "Sen": "Senator", "Rev": "Reverend",
}  # fmt: skip
_BARE = {"w/": "with", "w/o": "without", "vs": "versus", "e.g": "for example", "i.e": "that is"}
_NUMBERED = {  # before a number
    "No": "Number", "no": "number", "Nos": "Numbers", "nos": "numbers", "Nr": "Number", "p": "page", "pp": "pages",
    "P": "Page", "Vol": "Volume", "vol": "volume", "Fig": "Figure", "fig": "figure", "Figs": "Figures", "Ch": "Chapter",
    "ch": "chapter", "Sec": "Section", "sec": "section", "Eq": "Equation", "Art": "Article", "art": "article",
    "ca": "about", "c": "about", "Rs": "rupees",
}  # fmt: skip

FIRST_WORDS = frozenset(word.split(" ")[0] for word in [*_TITLES, *_ANYWHERE, *_BARE, *_NUMBERED])


def _alternatives(words: dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


TITLE = re.compile(rf"({_alternatives(_TITLES)})(?:\. ?|(?<=Dr|Mr|Ms|St|Mt) |(?<=Mrs) )(?=[A-Z])")
NUMBERED = re.compile(rf"({_alternatives(_NUMBERED)})\. ?(?=\d)")
DOTTED = re.compile(rf"({_alternatives(_ANYWHERE)})\.(?!\w)(?P<ends>[\"'”’)\]]*\Z)?")
BARE = re.compile(r"(w/o|w/|(?:vs|e\.g|i\.e)(?![\w.]))")

_CARDINAL = [
    "Chapter", "Part", "Act", "Scene", "Book", "Volume", "Section", "Article", "Appendix", "Phase", "Stage", "Type",
    "Class", "Title", "Level", "War", "Figure", "Table", "Unit", "Episode", "Season", "Lesson", "Exercise", "Group",
    "Apollo", "Rocky", "Bowl",
]  # fmt: skip
_ORDINAL = [
    "King", "Queen", "Pope", "Emperor", "Tsar", "Henry", "Louis", "Charles", "George", "Edward", "James", "William",
    "Richard", "Philip", "Francis", "Frederick", "Elizabeth", "Catherine", "Mary", "Nicholas", "Alexander", "Peter",
    "Ivan", "Napoleon", "Wilhelm", "Otto", "Leopold", "Carlos", "Pius", "Leo", "Benedict", "Gregory", "Clement",
    "Innocent", "Paul", "John", "Ramesses",
]  # fmt: skip
ROMAN = re.compile(rf"({'|'.join(_CARDINAL + _ORDINAL)}) ([IVXL]+)(?![\w'’]|\.\w)")
ROMAN_WORDS = frozenset(_CARDINAL + _ORDINAL)


def title(match: re.Match[str]) -> str:
    return _TITLES[match[1]] + " "


def numbered(match: re.Match[str]) -> str:
    return _NUMBERED[match[1]] + " "


def dotted(match: re.Match[str]) -> str:
    """The stop of an abbreviation at the end of a sentence is the sentence's, too."""
    return _ANYWHERE[match[1]] + ("." if match["ends"] is not None else "")


def bare(match: re.Match[str]) -> str:
    return _BARE[match[1]] + (" " if match[1] == "w/" else "")


def roman_numeral(match: re.Match[str]) -> str | None:
    """ "Henry VIII", "Chapter IV"; a lone "I" after a name is a pronoun."""
    value = roman(match[2])
    if not value or (match[1] in _ORDINAL and match[2] == "I"):
        return None
    return f"{match[1]} the {ordinal(value)}" if match[1] in _ORDINAL else f"{match[1]} {cardinal(value)}"
