"""English sentences to measure with: literature whose copyright is over, and sentences of our own around numbers.

Sources of the literature, all published before 1900: Austen, Carroll, Conan Doyle, Dickens, Jefferson, Lincoln,
Melville, Mary Shelley, Stevenson, Stoker, Swift, Thoreau, Twain, Wells. Pure: the same numbers give the same sentences.
"""

import random
from collections.abc import Iterator

LITERATURE = """
It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.
However little known the feelings or views of such a man may be on his first entering a neighbourhood, this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property of some one or other of their daughters.
"My dear Mr. Bennet," said his lady to him one day, "have you heard that Netherfield Park is let at last?"
Mr. Bennet replied that he had not.
"But it is," returned she; "for Mrs. Long has just been here, and she told me all about it."
"Do you not want to know who has taken it?" cried his wife impatiently.
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do.
So she was considering in her own mind, as well as she could, for the hot day made her feel very sleepy and stupid, whether the pleasure of making a daisy-chain would be worth the trouble of getting up and picking the daisies.
There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the Rabbit say to itself, "Oh dear! Oh dear! I shall be late!"
"Curiouser and curiouser!" cried Alice.
"Begin at the beginning," the King said gravely, "and go on till you come to the end: then stop."
To Sherlock Holmes she is always the woman.
I have seldom heard him mention her under any other name.
In his eyes she eclipses and predominates the whole of her sex.
"You see, but you do not observe."
"It is a capital mistake to theorize before one has data."
"My name is Sherlock Holmes; it is my business to know what other people don't know."
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.
There were a king with a large jaw and a queen with a plain face, on the throne of England.
"It is a far, far better thing that I do, than I have ever done."
Marley was dead: to begin with.
There is no doubt whatever about that.
Old Marley was as dead as a door-nail.
My father's family name being Pirrip, and my Christian name Philip, my infant tongue could make of both names nothing longer or more explicit than Pip.
We hold these truths to be self-evident, that all men are created equal.
When in the course of human events, it becomes necessary for one people to dissolve the political bands which have connected them with another, a decent respect to the opinions of mankind requires that they should declare the causes which impel them to the separation.
Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in liberty.
Now we are engaged in a great civil war, testing whether that nation can long endure.
The world will little note, nor long remember what we say here, but it can never forget what they did here.
Call me Ishmael.
Some years ago, never mind how long precisely, having little or no money in my purse, I thought I would sail about a little and see the watery part of the world.
It is a way I have of driving off the spleen, and regulating the circulation.
Whenever it is a damp, drizzly November in my soul, I account it high time to get to sea as soon as I can.
You will rejoice to hear that no disaster has accompanied the commencement of an enterprise which you have regarded with such evil forebodings.
It was on a dreary night of November that I beheld the accomplishment of my toils.
I arrived here yesterday, and my first task is to assure my dear sister of my welfare.
Squire Trelawney, Dr. Livesey, and the rest of these gentlemen having asked me to write down the whole particulars about Treasure Island, I take up my pen.
I remember him as if it were yesterday, as he came plodding to the inn door.
He was a very silent man by custom.
Left Munich at 8:35 p.m., on 1st May, arriving at Vienna early next morning.
"Listen to them, the children of the night; what music they make!"
My father had a small estate in Nottinghamshire; I was the third of five sons.
I attempted to rise, but was not able to stir.
I went to the woods because I wished to live deliberately, to front only the essential facts of life.
The mass of men lead lives of quiet desperation.
You don't know about me without you have read a book by the name of "The Adventures of Tom Sawyer"; but that ain't no matter.
That book was made by Mr. Mark Twain, and he told the truth, mainly.
There was things which he stretched, but mainly he told the truth.
"Tom!" No answer. "What's gone with that boy, I wonder?"
The old lady pulled her spectacles down and looked over them about the room; then she put them up and looked out under them.
The Time Traveller was expounding a recondite matter to us.
No one would have believed in the last years of the nineteenth century that this world was being watched keenly and closely by intelligences greater than man's.
The chances of anything coming from Mars are a million to one, he said.
""".strip().splitlines()  # noqa: E501

# What stands in braces is filled in.
_TEMPLATES = """
The meeting was moved from {month} {day} to {month} {day}, {year}.
It costs ${money}, which is {small} percent less than in {year}.
Flight {flight} to {city} leaves at {hour}:{minute} p.m. from gate {letter}{small}.
Dr. {name} and Mrs. {name} live at {number} {city} Street, St. {city}.
The temperature fell to -{small}.{digit} °C in {city}, {name} said.
Please call {phone} before {hour} a.m., or write to {name}@example.com.
{name} ran {small}.{digit} km in {minute} minutes; {name} needed {hour} more.
The {ordinal} of {count} houses belongs to {name} & Sons, Inc.
"Was it {name}?" asked {name} ({city}'s mayor since {year}).
See https://www.example.com/{city}/{number} for {name}'s report, e.g. page {small}.
In {year}-{year2}, {number},{three} people left {city} — nobody knows why...
Between {small} and {number} of them, i.e. {small}%, came back.
{name} wrote: "I'll be there at {hour}:{minute}, no later!"
Version {digit}.{small}.{digit} of the software needs {small} GB of memory.
Chapter {small}, p. {number}: the story of {name} the {ordinal}.
Take {fraction} cup of sugar, {digit} eggs and {number} g of flour.
He was born on {month} {day}, {year}, in {city}; she was {small} then.
The score was {small}-{digit}, although {name} had missed {digit} times.
We sold {number} units for €{money} each, {name} told the board.
If {name} is right, then the road from {city} to {city} is {number} miles long.
Where did {name} put the keys, and when will {name} be back from {city}?
Although it rained in {city} for {small} days, {name} went for a walk every morning.
{name}, {name} and {name} were there; nobody else came to {city} that year.
Room {number} is on the {ordinal} floor, next to the lift.
He paid £{money} for it at the U.S. embassy in {city}, at {hour} o'clock.
The quick brown fox of {city} jumps over {number} lazy dogs.
"Nobody," said {name}, "has ever been to {city} in less than {small} hours."
Order no. {number}-{three} was sent to {name} on {month} {day}.
""".strip().splitlines()
_NAMES = "Anna Brown Clara Dawson Edith Frank Garcia Henry Irving Jones Keller Laura Miller Smith".split()  # noqa: SIM905
_CITIES = "Boston Dublin Geneva Lisbon London Madrid Oslo Paris Prague Seattle Vienna Warwick".split()  # noqa: SIM905
_MONTHS = ("January", "March", "May", "July", "August", "October", "December", "Jan.", "Feb.", "Sept.", "Nov.")
_FRACTIONS = ("½", "⅓", "¾", "1/2", "3/4", "1½")


def sentences(count: int, seed: int = 0) -> Iterator[str]:
    """Different ones, the literature first."""
    yield from LITERATURE[:count]
    chance = random.Random(f"sentences {seed}")
    given: set[str] = set()
    while len(given) < count - len(LITERATURE):
        sentence = _filled(chance.choice(_TEMPLATES), chance)
        if sentence not in given:
            given.add(sentence)
            yield sentence


def _filled(template: str, chance: random.Random) -> str:
    while "{" in template:
        begin, end = template.index("{"), template.index("}")
        template = template[:begin] + _filling(template[begin + 1 : end], chance) + template[end + 1 :]
    return template


def _filling(kind: str, chance: random.Random) -> str:
    match kind:
        case "name":
            return chance.choice(_NAMES)
        case "city":
            return chance.choice(_CITIES)
        case "month":
            return chance.choice(_MONTHS)
        case "fraction":
            return chance.choice(_FRACTIONS)
        case "letter":
            return chance.choice("ABCDEF")
        case "ordinal":
            return chance.choice(("1st", "2nd", "3rd", "4th", "12th", "21st"))
        case "phone":
            return f"({chance.randint(201, 989)}) 555-{chance.randint(100, 199):04}"
        case "money":
            return f"{chance.randint(1, 1999):,}.{chance.randint(0, 99):02}"
        case "minute":
            return f"{chance.randint(10, 59)}"
        case "flight":
            return f"{chance.choice(('BA', 'LH', 'AF'))}{chance.randint(100, 999)}"
        case _:
            least, most = _RANGES[kind]
            return str(chance.randint(least, most))


_RANGES = {
    "day": (1, 28), "year": (1800, 2030), "year2": (2031, 2060), "small": (2, 49), "number": (50, 999),
    "three": (100, 999), "hour": (1, 12), "digit": (1, 9), "count": (30, 90),
}  # fmt: skip
