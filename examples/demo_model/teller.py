# SPDX-License-Identifier: Apache-2.0
"""The story teller: characters, things and places, templates with alternatives, and sentences that many plots need.

Text is written with alternatives in square brackets, "[One day|Once]", nested at will, and names in braces,
"{h.he}". Plots are in plots_home.py and plots_road.py.
"""
import re

from words import *

BRACKET = re.compile(r"\[([^\[\]]*)\]")
FIELD = re.compile(r"\{(\w+)(?:\.(\w+))?\}")


class Being:
    """A character; {h} is the name, {h.he} {h.him} {h.his} the pronouns, capitalised with a capital."""

    def __init__(self, name, he, kind, species=""):
        self.name, self.he, self.kind, self.species, self.trait = name, he, kind, species, ""
        self.him = {"he": "him", "she": "her", "it": "it", "they": "them"}[he]
        self.his = {"he": "his", "she": "her", "it": "its", "they": "their"}[he]
        self.himself = {"he": "himself", "she": "herself", "it": "itself", "they": "themselves"}[he]
        self.boy = {"he": "boy", "she": "girl"}.get(he, "creature")

    def __str__(self):
        return self.name


class Thing:
    """A thing with an adjective; {o} is "red ball", {o.a} "a red ball", {o.the}, {o.noun} "ball"."""

    def __init__(self, noun, adjective="", use=""):
        self.noun, self.adjective, self.use = noun, adjective, use
        self.full = f"{adjective} {noun}".strip()
        self.a = ("an " if self.full[0] in "aeiou" else "a ") + self.full
        self.the = "the " + self.full

    def __str__(self):
        return self.full


class Place:
    def __init__(self, row):
        self.name, self.prep, self.sights, self.spots = row
        self.at = f"{self.prep} {self.name}"

    def __str__(self):
        return self.name


class Teller:
    """Expands templates with one random generator and collects the sentences of one story."""

    def __init__(self, random):
        self.random = random
        self.names = {}
        self.out = []
        self.used = set()

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, p):
        return self.random.random() < p

    def fill(self, text):
        while "[" in text:
            text = BRACKET.sub(lambda m: self.random.choice(m.group(1).split("|")), text)

        def field(m):
            value = self.names[m.group(1)]
            part = m.group(2)
            if not part:
                return str(value)
            if part[0].isupper() and part.lower() != part and hasattr(value, part.lower()):
                found = getattr(value, part.lower())
                return found[0].upper() + found[1:]
            return getattr(value, part)

        text = FIELD.sub(field, text)
        text = re.sub(r"  +", " ", text).strip().replace(" .", ".")
        text = re.sub(r"\b([Aa]) (?=[aeiou]|honest)", r"\1n ", text)
        return re.sub(r"([.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)

    def tell(self, *texts):
        """One or more sentences, each capitalised."""
        for text in texts:
            text = self.fill(text)
            if not text:
                continue
            for i, c in enumerate(text):
                if c.isalpha():
                    text = text[:i] + c.upper() + text[i + 1:]
                    break
                if c.isdigit():
                    break
            self.out.append(text)

    def say(self, who, line, how=""):
        """A line of speech with its tag before, after or in the middle."""
        line = self.fill(line)
        name = str(self.names[who]) if who in self.names else who
        last = line[-1]
        asked = bool(self.out) and "?" in self.out[-1]
        verb = {"?": "asked", "!": self.pick(["cried", "called", "shouted", "said"])}.get(
            last, self.pick(["said", "said", "said", "replied", "answered"] if asked else ["said"]))
        if how:
            how = " " + self.fill(how)
        inside = line[:-1] + "," if last == "." else line
        shape = self.random.random()
        cap = name[0].upper() + name[1:]
        if shape < 0.45:
            self.out.append(f'"{inside}" {verb} {name}{how}.')
        elif shape < 0.7:
            self.out.append(f'"{inside}" {name} {verb}{how}.')
        else:
            self.out.append(f'{cap} {verb}{how}, "{line}"')

    def para(self):
        if self.out and self.out[-1] != "\n":
            self.out.append("\n")
            aside(self)

    def text(self):
        result = ""
        for part in self.out:
            if part == "\n":
                result = result.rstrip() + "\n"
            else:
                result += ("" if not result or result.endswith("\n") else " ") + part
        return result.strip()

    # characters, things, places not used before in this story
    def fresh(self, items, key=lambda x: x):
        for _ in range(50):
            item = self.random.choice(items)
            if key(item) not in self.used:
                break
        self.used.add(key(item))
        return item

    def child(self):
        girl = self.chance(0.5)
        name = self.fresh(GIRLS if girl else BOYS)
        return Being(name, "she" if girl else "he", "girl" if girl else "boy")

    def animal(self, species=None):
        species = species or self.fresh(SPECIES)
        return Being(self.fresh(ANIMAL_NAMES), self.pick(["he", "she"]), species, species)

    def hero(self, want=None):
        want = want or {}
        if "species" in want:
            found = self.animal(want["species"])
        elif "name" in want:
            girl = want["name"] in GIRLS
            found = Being(want["name"], "she" if girl else "he", "girl" if girl else "boy")
        else:
            found = self.child() if self.chance(0.62) else self.animal()
        if "name" in want:
            found.name = want["name"]
            self.used.add(found.name)
        return found

    def friend_of(self, hero):
        if hero.species or self.chance(0.2):
            return self.animal()
        return self.child()

    def adult(self, hero):
        row = self.fresh(ADULTS)
        return Being(row[0] if hero.he == "he" else row[1], row[2], "grown-up")

    def villager(self):
        row = self.fresh(VILLAGERS)
        return Being(row[0], row[1], "grown-up")

    def toy(self, want=None):
        want = want or {}
        found = [t for t in TOYS if t[0] == want.get("noun")]
        noun, use = found[0] if found else self.fresh(TOYS, key=lambda t: t[0])
        adjective = self.pick(COLOURS) if self.chance(0.65) else self.pick(
            ["little", "old", "new", "shiny", "tiny", "wooden", "pretty", "big", "special", "lovely", "small"])
        adjective = want.get("adjective", adjective)
        return Thing(noun, adjective, use)

    def place(self):
        return Place(self.fresh(PLACES, key=lambda p: p[0]))


HOMES = ("in a small house by the woods|in a little village|near the sea|on a quiet street|in a tall house in the town|at the edge of a big field|in a house with a green door|"
         "on a hill above the river|next to the mill|in a warm cottage|in a flat above a bakery|at the end of a long lane|beside a railway line|on a boat in the harbour|"
         "in a stone house with a crooked chimney|behind the old church|in a valley between two mountains|across from the school|on the top floor of a noisy house").split("|")
DENS = ("in a cosy hole under an oak|in the deep forest|by a clear stream|at the edge of a big field|in an old tree|on a small farm|near a quiet pond|in a den behind the hill|"
        "in a little house with a round door|under the roots of a willow|behind a waterfall|in a barn full of hay|at the bottom of a garden|on a sunny slope|beside a blackberry hedge").split("|")


def habit(t):
    """One sentence of what the hero is like."""
    kind = t.random.randrange(5)
    return [
        "{h.He} [liked|loved] to [sing in the morning|count the stars|draw on old paper|collect round stones|watch the clouds|listen to old tales|ask questions about everything|wake up early|whistle in the rain].",
        "Every [morning|evening] {h.he} [went for a walk|swept the floor|fed the birds|looked out of the window and dreamed|wrote a line in a diary|said hello to the neighbours].",
        "People said that {h.he} had [a head full of ideas|the loudest laugh around|quick feet|a warm heart|sharp eyes|two left feet].",
        "{h.His} favourite meal was [soup with noodles|bread with honey|hot porridge|baked apples|cheese on toast|blueberry pie].",
        "{h.He} had [a funny way of walking|a spot on {h.his} nose|a very long scarf|bright eyes|a squeaky voice], and {h.he} [was happy with it|did not mind].",
    ][kind]


def opening(t, tag="h"):
    """Introduces the hero: kind, name, home, and at times a habit or the season."""
    h = t.names[tag]
    t.names["trait"] = h.trait = t.pick(TRAITS)
    t.names["second"] = t.pick([x for x in TRAITS if x != h.trait])
    t.names["home"] = t.pick(DENS if h.species else HOMES)
    who = "{trait} [|little |young |small ]" + ("{h.species}" if h.species else "{h.boy}")
    t.tell(t.pick([
        f"[Once upon a time|Once|Long ago|A long time ago|Many years ago], there was a {who} [named|called] {{h}}.",
        f"[Once upon a time|Once], a {who} [named|called] {{h}} lived {{home}}.",
        f"{{h}} was a {who} who lived {{home}}.",
        f"There was once a {who} [named|called] {{h}}. {{h.He}} lived {{home}}.",
        f"In a land [not so|not very] far away, a {who} named {{h}} lived {{home}}.",
        f"{{h}} lived {{home}}. {{h.He}} was a {who}[, and everyone knew {{h.him}}|, and {{h.he}} was very {{second}} too|].",
        f"{{home}}, there lived a {who} [named|called] {{h}}.",
        f"This is the story of {{h}}, a {who} who lived {{home}}.",
        f"Nobody {{home}} was as {{trait}} as {{h}}, the [little |young |]" + ("{h.species}." if h.species else "{h.boy}."),
        f"If you had met {{h}}, you would have seen a {{trait}} and {{second}} " + ("{h.species}." if h.species else "{h.boy}."),
    ]))
    if t.chance(0.4):
        t.tell(habit(t))


ASIDES = [
    "The [wind|air|breeze] [smelled of|carried the smell of] [rain|pine|bread|smoke|wet earth|flowers|the sea].",
    "[Far away|Somewhere|In the distance], a [bell|dog|cuckoo|train|church bell|rooster] could be heard.",
    "[A|One] [leaf|feather|snowflake|petal] [floated|drifted|fell] [slowly |]to the ground.",
    "The [clouds|shadows] [moved|slid] [slowly |quietly |]over the [fields|roofs|hills|water].",
    "[Two|Three|Some] [sparrows|crows|butterflies|swallows|beetles] [flew by|went past|seemed to watch].",
    "The [sun|moon] [peeped|looked|shone] [through the branches|over the roofs|between two clouds].",
    "For a [moment|while|little while] [nobody spoke|everything was still|it was very quiet].",
    "The [road|path|ground|grass] was [wet|dusty|soft|covered with leaves|full of puddles|warm from the sun].",
    "It was so [quiet|still] that you could hear [a leaf fall|the clock tick|your own heart|the grass grow].",
    "[A|An old] [cat|dog|hen|snail|toad] [watched|looked on] [from the wall|from a doorstep|with sleepy eyes] and did nothing at all.",
]


def aside(t, p=0.35):
    if t.chance(p):
        t.tell(t.pick(ASIDES))


def day(t):
    t.names["weather"] = w = t.pick(WEATHER)
    return t.fill(t.pick(["One {weather} [morning|day|afternoon]", "One day", "One morning", "On a {weather} [morning|day|afternoon]", "Early one morning", "One {weather} day",
                          "On the first day of [spring|summer|autumn|winter|the holidays]", "Late one afternoon"]))


def arrive(t, place, tag="h"):
    t.names["p"] = place
    t.names["sight"], t.names["sight2"] = t.random.sample(place.sights, 2)
    who = "{" + tag + "}"
    he = "{" + tag + ".He}"
    t.tell(t.pick([f"{who} [walked|went|ran|hurried] to {{p}}.", f"{he} set off for {{p}}.",
                   f"Soon {who} came to {{p}}, where there {'was' if place.sights and t.names['sight'].startswith(('a ', 'an ')) else 'were' if not t.names['sight'].endswith('moss') else 'was'} {{sight}}.",
                   f"{who} [walked|went|ran] all the way to {{p}}."]))
    if t.chance(0.4):
        t.tell("{" + tag + ".He} saw {sight} and {sight2}.")


def feel(t, tag, mood):
    words = {"sad": ["sad", "very sad", "unhappy", "so sad that {X.his} eyes filled with tears", "ready to cry", "miserable", "heavy at heart", "so unhappy that {X.he} sat down on the spot"],
             "happy": ["happy", "very happy", "glad", "so happy that {X.he} danced", "full of joy", "delighted", "as light as a feather", "so glad that {X.he} laughed out loud", "pleased", "warm inside"],
             "scared": ["scared", "afraid", "very frightened", "so scared that {X.he} could not move", "cold with fear", "terrified", "so afraid that {X.his} knees shook"],
             "angry": ["angry", "cross", "very angry", "so cross that {X.he} stamped on the ground", "furious", "hot with anger"],
             "proud": ["proud", "very proud", "so proud that {X.he} stood up tall", "ten feet tall", "pleased with {X.himself}"],
             "sorry": ["sorry", "very sorry", "ashamed", "so sorry that {X.he} could not eat", "bad about it"],
             "worried": ["worried", "very worried", "uneasy", "nervous", "so worried that {X.he} walked up and down"],
             "lonely": ["lonely", "all alone", "very lonely", "left out", "forgotten"]}
    t.tell(t.pick(["{X} [was|felt] ", "{X.He} [was|felt] "]).replace("X", tag) + t.pick(words[mood]).replace("X", tag) + ".")


def moral(t, key, tag="h"):
    t.names["moral"] = t.fill(t.pick(MORALS[key]))
    text = t.pick(["From that day on, {X} knew that {moral}.", "{X} never forgot that {moral}.", "{X} had learned that {moral}.",
                   "And so {X} learned that {moral}.", "That night, {X} thought, \"Now I know that {moral}.\"",
                   "{X} smiled, because now {X.he} knew that {moral}."])
    t.tell(text.replace("X", tag))


def goodbye(t, tag="h"):
    if t.chance(0.6):
        t.tell(t.pick(["It was [a very good day|the best day of the year|a day to remember].",
                       "Then {X} went home and [slept well|had a warm supper|told the whole family about it].",
                       "That night {X} fell asleep with a smile.", "The end.",
                       "And the [sun|moon|stars] seemed to smile too."]).replace("X", tag))
