"""Languages without a reader of their own: digits one by one, by their names in the language; all else as it stands.

Where the names are not known, digits are left to the engine.
"""

from collections.abc import Callable

from .addresses import Urls
from .spoken import Writer

_NAMES = {
    "de": "null eins zwei drei vier fünf sechs sieben acht neun",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "pt": "zero um dois três quatro cinco seis sete oito nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
    "sv": "noll ett två tre fyra fem sex sju åtta nio",
    "da": "nul en to tre fire fem seks syv otte ni",
    "nb": "null en to tre fire fem seks sju åtte ni",
    "fi": "nolla yksi kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän",
    "pl": "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć",
    "cs": "nula jedna dva tři čtyři pět šest sedm osm devět",
    "tr": "sıfır bir iki üç dört beş altı yedi sekiz dokuz",
    "ru": "ноль один два три четыре пять шесть семь восемь девять",
    "uk": "нуль один два три чотири п'ять шість сім вісім дев'ять",
    "zh": "零 一 二 三 四 五 六 七 八 九",
    "ja": "ゼロ いち に さん よん ご ろく なな はち きゅう",
    "ko": "영 일 이 삼 사 오 육 칠 팔 구",
}
Reader = Callable[[str, Writer, Urls, int, int], None]


def reader(language: str) -> Reader:
    names = _NAMES.get(language.split("-")[0].lower(), "").split()

    def read(text: str, writer: Writer, urls: Urls, start: int, end: int) -> None:
        kept = start
        for at in range(start, end):
            if names and text[at].isdecimal():
                writer.copy(kept, at)
                writer.say(at, at + 1, f" {names[int(text[at])]} ")
                kept = at + 1
        writer.copy(kept, end)

    return read
