# SPDX-License-Identifier: Apache-2.0
"""The tools that conversations offer, each with a maker of questions about it.

A maker takes a random.Random and returns a Tool, whose name, description and parameters are drawn once; ask() then
draws a Question about it. tool_talk.py makes conversations of them. What must be copied (numbers, names, codes) is
drawn from sets far larger than a model could learn by heart.
"""
import dataclasses
import json
import typing

import talk
import words

SYLLABLES = [c + v for c in "b d f g k l m n p r s t v z br dr kl st tr".split() for v in "aeiou"]
STRING, NUMBER, INTEGER, BOOLEAN = ({"type": x} for x in ("string", "number", "integer", "boolean"))


@dataclasses.dataclass
class Question:
    text: str
    arguments: dict
    result: str
    answer: str
    about: str = ""  # what a tool that fails has not found
    value: object = None  # the result as a number, for a question that goes on with it


@dataclasses.dataclass
class Tool:
    name: str
    description: str
    properties: dict
    ask: typing.Callable[[], Question]
    kind: str = ""
    has_prices: bool = False


def invented(r):
    """A word that is in no list."""
    return "".join(r.choice(SYLLABLES) for _ in range(r.choice([1, 2, 2, 3]))) + r.choice(["", "", "n", "l", "r", "s", "x"])


def code(r):
    return r.choice([lambda: f"{r.choice('ABCDEFGHJKLMNPRSTXYZ')}{r.randint(1, 999)}", lambda: f"{r.choice('ABCDEFGHKX')}{r.choice('ABCDEFGHKX')}-{r.randint(1, 999)}",
                     lambda: str(r.randint(100, 99999)), lambda: f"{invented(r)}{r.randint(1, 99)}"])()


def person(r):
    first = talk.name(r) if r.random() < 0.5 else talk.cap(invented(r))
    return first + " " + talk.cap(invented(r)) if r.random() < 0.15 else first


def place(r):
    return r.choice(talk.CITIES) if r.random() < 0.6 else talk.cap(invented(r))


def thing(r):
    return r.choice(talk.FRUITS + [t[0] for t in words.TOYS] + [f[0] for f in words.FOODS]) if r.random() < 0.7 else invented(r)


def number(r, top=999):
    """A number of one, two or three digits, each length as likely."""
    return r.choice([r.randint(0, 9), r.randint(10, 99), r.randint(100, 999)]) % (top + 1)


def plain(value):
    """A number as a calculator shows it."""
    return str(int(value)) if value == int(value) else f"{value:.2f}".rstrip("0").rstrip(".")


WORD_OF = {"+": ["plus"], "-": ["minus"], "*": ["times", "multiplied by"], "/": ["divided by"]}


def expression(r):
    """(how it is said, how it is written, value)."""
    kind = r.random()
    if kind < 0.12:
        a, b, c = number(r), number(r), number(r)
        text, value = r.choice([(f"{a} + {b} + {c}", a + b + c), (f"{a} + {b} * {c}", a + b * c), (f"{a} * {b} - {c}", a * b - c), (f"({a} + {b}) * {c}", (a + b) * c), (f"{a} - {b} + {c}", a - b + c)])
        return text, text, value
    if kind < 0.17:
        a, b = r.randint(1, 999) / 10, r.randint(1, 9999) / 100
        text = f"{a} + {b}"
        return text, text, a + b
    op = r.choice("++***-/")
    a, b = number(r), number(r)
    if op == "/":
        b = r.randint(1, 99)
        a = b * r.randint(1, 99) if r.random() < 0.6 else a
    value = {"+": a + b, "-": a - b, "*": a * b}[op] if op != "/" else a / b
    form = r.random()
    if form < 0.05 and op in "+-*":
        a, b = r.randint(0, 20), r.randint(0, 20)
        value = {"+": a + b, "-": a - b, "*": a * b}[op]
        return f"{talk.NUMBER[a]} {r.choice(WORD_OF[op])} {talk.NUMBER[b]}", f"{a} {op} {b}", value
    if form < 0.4:
        return f"{a} {op} {b}", f"{a} {op} {b}", value
    if form < 0.5:
        return f"{a}{op}{b}", f"{a}{op}{b}", value
    if form < 0.56 and op == "*":
        return f"{a} x {b}", f"{a} * {b}", value
    return f"{a} {r.choice(WORD_OF[op])} {b}", f"{a} {op} {b}", value


def problem(r):
    """(question, expression, value, answer) of a sum in words."""
    who, many = person(r), r.choice(["apples", "marbles", "coins", "books", "shells", "pears", "stamps", "cards", "stones", "eggs"])
    a, b = r.randint(2, 999), r.randint(2, 999)
    kind = r.randrange(6)
    if kind == 0:
        return f"{who} has {a} {many} and {r.choice(['gets', 'finds', 'buys'])} {b} more. How many {many} does {who} have now?", f"{a} + {b}", a + b, f"{who} has {a + b} {many} now."
    if kind == 1:
        a, b = max(a, b) + 1, min(a, b)
        return f"{who} has {a} {many} and {r.choice(['loses', 'gives away', 'sells'])} {b}. How many {many} are left?", f"{a} - {b}", a - b, f"{who} has {a - b} {many} left."
    if kind == 2:
        return f"There are {a} boxes with {b} {many} each. How many {many} are there?", f"{a} * {b}", a * b, f"There are {a * b} {many}."
    if kind == 3:
        item = thing(r)
        return f"{talk.cap(talk.a(item))} costs {a} coins. What do {b} of them cost?", f"{a} * {b}", a * b, f"They cost {a * b} coins."
    if kind == 4:
        return r.choice([(f"Add {a} and {b}.", f"{a} + {b}", a + b, f"{a} + {b} = {a + b}"), (f"Multiply {a} by {b}.", f"{a} * {b}", a * b, f"{a} * {b} = {a * b}"), (f"Take {b} away from {a}.", f"{a} - {b}", a - b, f"{a} - {b} = {a - b}"),
                         (f"What is the sum of {a} and {b}?", f"{a} + {b}", a + b, f"{a} + {b} = {a + b}"), (f"What is the product of {a} and {b}?", f"{a} * {b}", a * b, f"{a} * {b} = {a * b}")])
    b = r.randint(2, 20)
    c = r.randint(2, 99)
    return f"{b} children share {b * c} {many}. How many does each get?", f"{b * c} / {b}", c, f"Each child gets {c} {many}."


def calculator(r):
    key = r.choice(["expression"] * 22 + ["formula", "input", "sum"])

    def ask():
        if r.random() < 0.3:
            text, written, value, answer = problem(r)
        else:
            said, written, value = expression(r)
            text = r.choice([f"What is {said}?", f"What is {said}?", f"How much is {said}?", f"Calculate {said}.", f"Compute {said}.", f"{said} = ?", f"{said}", f"What is the result of {said}?",
                             f"Can you tell me what {said} is?", f"Please work out {said}.", f"I need to know {said}.", f"what's {said}"])
            answer = f"{written} = {plain(value)}" if r.random() < 0.8 else f"The answer is {plain(value)}."
        result = plain(value) if r.random() < 0.75 else json.dumps({r.choice(["result", "value"]): json.loads(plain(value))})
        return Question(text, {key: written}, result, answer, about=written, value=value)

    return Tool(r.choice(["calculator"] * 40 + ["calculate", "calc", "math", "evaluate", "compute"]),
                r.choice(["Computes an expression.", "Evaluates an arithmetic expression.", "Calculates sums and products.", "A calculator.", "Works out the value of an expression.", "Does arithmetic.",
                          "Evaluates an arithmetic expression and returns the result.", "Use this for all sums."]), {key: STRING}, ask, "calculator")


def amount(r):
    return r.choice([str, str, "{} coins".format, "{} cents".format, "{} euros".format])(r.randint(1, 999))


# what a lookup may tell: field, maker of a value, questions about it, answer; {n} is the entry, {a} the entry with its
# article and {v} the value
FACTS = {
    "person": (person, [
        ("age", lambda r: r.randint(3, 99), ["How old is {n}?", "What is the age of {n}?"], "{n} is {v} years old."),
        ("city", place, ["Where does {n} live?", "In which city does {n} live?"], "{n} lives in {v}."),
        ("phone", lambda r: r.randint(1000, 99999), ["What is the phone number of {n}?", "What is {n}'s number?"], "The phone number of {n} is {v}."),
        ("job", lambda r: r.choice("baker farmer teacher doctor painter cook singer nurse tailor miller".split()), ["What does {n} do?", "What is the job of {n}?"], "The job of {n} is {v}."),
        ("room", lambda r: r.randint(1, 400), ["In which room is {n}?", "Where can I find {n}?"], "{n} is in room {v}."),
        ("email", lambda r: invented(r) + "@example.com", ["What is the email of {n}?", "How can I write to {n}?"], "The email of {n} is {v}."),
        ("birthday", lambda r: f"{r.choice(talk.MONTHS)} {r.randint(1, 28)}", ["When is the birthday of {n}?", "When was {n} born?"], "The birthday of {n} is {v}."),
        ("pet", lambda r: f"{talk.a(r.choice(sorted(talk.ANIMALS)))} named {r.choice(words.ANIMAL_NAMES)}", ["What pet does {n} have?"], "{n} has {v}."),
        ("about", lambda r: f"{talk.a(r.choice(words.TRAITS))} {r.choice('baker farmer teacher doctor painter cook singer nurse tailor miller'.split())} from {place(r)}",
         ["Who is {n}?", "What do you know about {n}?", "Look up {n}.", "Tell me about {n}."], "{n} is {v}.")]),
    "item": (thing, [
        ("price", amount, ["What does the {n} cost?", "How much is {a}?", "What is the price of the {n}?", "What does {a} cost?"], "The {n} costs {v}."),
        ("stock", lambda r: r.randint(0, 500), ["How many of the {n} are in stock?", "What is the stock of the {n}?"], "There are {v} of the {n} in stock."),
        ("colour", lambda r: r.choice(words.COLOURS), ["Which colour has the {n}?"], "The {n} is {v}."),
        ("weight", lambda r: r.randint(1, 900), ["How heavy is the {n}?", "What is the weight of the {n}?"], "The weight of the {n} is {v}.")]),
    "order": (code, [
        ("status", lambda r: r.choice("open paid sent lost ready late".split()), ["What is the status of order {n}?", "Where is my order {n}?", "Look up the order {n}."], "Order {n} is {v}."),
        ("day", lambda r: r.choice(talk.DAYS), ["When does order {n} come?", "On which day is order {n} due?"], "Order {n} comes on {v}."),
        ("total", lambda r: r.randint(1, 999), ["What is the total of order {n}?"], "The total of order {n} is {v}.")]),
    "key": (lambda r: r.choice([code, invented])(r), [
        ("value", lambda r: r.choice([invented, number, code])(r), ["Look up {n}.", "What is the value of {n}?", "Find {n} for me.", "What is stored under {n}?", "Look up the key {n}."], "The value of {n} is {v}.")]),
    "word": (thing, [
        ("meaning", lambda r: f"{talk.a(r.choice(words.TRAITS))} {invented(r)}", ["What does the word {n} mean?", "What is the meaning of {n}?", "Look up the word {n}."], "The word {n} means: {v}.")]),
    "place": (place, [
        ("people", lambda r: r.randint(100, 99999), ["How many people live in {n}?"], "{v} people live in {n}."),
        ("country", lambda r: r.choice(sorted(talk.CAPITALS)), ["In which country is {n}?"], "{n} is in {v}."),
        ("code", code, ["What is the code of {n}?", "What is the post code of {n}?"], "The code of {n} is {v}.")]),
}
LOOKUP_KEYS = {"person": ["name", "name", "name", "key", "key", "person"], "item": ["key", "key", "name", "name", "item"], "order": ["key", "key", "id"], "key": ["key"], "word": ["key", "key", "word"], "place": ["key", "name", "city"]}


def lookup(r, kinds=None):
    kinds = kinds or r.choice([["person"], ["person"], ["item"], ["order"], ["key"], ["word"], ["place"], sorted(FACTS), sorted(FACTS)])
    key = r.choice(LOOKUP_KEYS[kinds[0]]) if len(kinds) == 1 else r.choice(["key", "key", "key", "name", "name", "query"])

    def ask(field=None):
        entry, facts = FACTS[r.choice(kinds)]
        n = str(entry(r))
        name, value, questions, answer = r.choice([f for f in facts if field in (None, f[0])])
        v = value(r)
        row = {f[0]: f[1](r) for f in r.sample(facts, r.randint(1, len(facts))) if r.random() < 0.5 and f[0] != name}
        row[name] = v
        row = {k: row[k] for k in r.sample(sorted(row), len(row))}
        if r.random() < 0.3:
            row = {key: n, **row}
        result = str(v) if r.random() < 0.5 else json.dumps(row)
        return Question(r.choice(questions).format(n=n, a=talk.a(n)), {key: n}, result, talk.cap(answer.format(n=n, v=v, a=talk.a(n))), about=n, value=v)

    what = {"person": "a person", "item": "an item", "order": "an order", "key": "a key", "word": "a word", "place": "a city"}[kinds[0]] if len(kinds) == 1 else "an entry"
    return Tool(r.choice(["lookup"] * 40 + ["look_up", "find", "search", "get_record", "find_entry"]),
                r.choice([f"Looks up {what}.", f"Finds {what} in the records.", f"Returns what is known about {what}.", f"Looks {what} up in a table.", f"Gets the data of {what}.", "Looks up a value by its key."]), {key: STRING}, ask, "lookup", "item" in kinds)


def simple(names, descriptions, properties, make):
    """A maker of a tool whose make(r, keys) returns (question, arguments by place, result, answer, about)."""
    def maker(r):
        keys = [r.choice(choices.split("|")) for choices, _ in properties]
        kinds = [kind(r) if callable(kind) else kind for _, kind in properties]

        def ask():
            text, values, result, answer, about = make(r, kinds)
            return Question(text, dict(zip(keys, values)), result, answer, about=str(about))

        return Tool(r.choice(names.split("|")), r.choice(descriptions.split("|")), dict(zip(keys, kinds)), ask)
    return maker


def enum(*choices):
    return {"type": "string", "enum": list(choices)}


def weather(r, kinds):
    c, degrees, sky = place(r), r.randint(-20, 40), r.choice("sunny cloudy rainy snowy windy foggy".split())
    units = kinds[1]["enum"]
    unit = r.choice(units)
    said = r.choice(["", f" in {unit}"])
    unit = unit if said else units[0]
    result = r.choice([f"{degrees} degrees, {sky}", json.dumps({"temperature": degrees, "sky": sky}), json.dumps({"sky": sky, "degrees": degrees})])
    return r.choice([f"What is the weather in {c}{said}?", f"How is the weather in {c}{said}?", f"What is it like in {c}{said}?"]), [c, unit], result, f"In {c} it is {sky}, with {degrees} degrees.", c


def weather_short(r, kinds):
    c, degrees, sky = place(r), r.randint(-20, 40), r.choice("sunny cloudy rainy snowy windy foggy".split())
    result, told = r.choice([(f"{degrees} degrees, {sky}", f"{sky}, with {degrees} degrees"), (f"{sky}, {degrees} degrees", f"{sky}, with {degrees} degrees"), (json.dumps({"temperature": degrees, "sky": sky}), f"{sky}, with {degrees} degrees"),
                             (f"{degrees} degrees", f"{degrees} degrees"), (sky, sky), (json.dumps({"sky": sky}), sky), (json.dumps({"temperature": degrees}), f"{degrees} degrees")])
    return r.choice([f"What is the weather in {c}?", f"How is the weather in {c}?", f"Is it nice in {c}?", f"Tell me the weather in {c}."]), [c], result, f"In {c} it is {told}.", c


def timer(r, kinds):
    m = r.randint(1, 120)
    return r.choice([f"Set a timer for {m} minutes.", f"Wake me in {m} minutes.", f"Start a timer of {m} minutes."]), [m], r.choice(["ok", "done", '{"ok": true}']), f"The timer is set for {m} minutes.", ""


def message(r, kinds):
    p, task = person(r), r.choice(["buy milk", "feed the cat", "water the plants", "call grandma", "come home", "clean the room", "bring " + thing(r), "wait at the " + r.choice(words.PLACES)[0][4:]])
    return r.choice([f"Tell {p} to {task}.", f"Send {p} a message: {task}.", f"Write {task} to {p}."]), [p, task], r.choice(["sent", "ok", '{"sent": true}']), f"I have told {p} to {task}.", ""


def song(r, kinds):
    s = " ".join(talk.cap(x) for x in r.choice([[invented(r), "song"], ["the", r.choice(words.COLOURS), thing(r)], ["little", thing(r)], [invented(r)]]))
    return r.choice([f"Play {s}.", f"I want to hear {s}.", f"Please play the song {s}."]), [s], r.choice(["playing", "ok"]), f"Now you hear {s}.", ""


def order(r, kinds):
    t, n = thing(r), r.randint(1, 99)
    return r.choice([f"Order {n} {t} for me.", f"Please buy {n} {t}.", f"I need {n} {t}."]), [t, n], r.choice(["ok", "ordered", json.dumps({"order": r.randint(10, 999)})]), f"I have ordered {n} {t}.", ""


def train(r, kinds):
    a, b, d, hour = place(r), place(r), r.choice(talk.DAYS), f"{r.randint(5, 23)}:{r.randint(0, 59):02}"
    return r.choice([f"Find a train from {a} to {b} on {d}.", f"Is there a train from {a} to {b} on {d}?"]), [a, b, d], r.choice([hour, json.dumps({"time": hour}), json.dumps({"departure": hour, "price": r.randint(5, 90)})]), f"There is a train from {a} to {b} at {hour}.", a


def event(r, kinds):
    what, p, d, h = r.choice(["visit", "party", "lesson", "meeting", "picnic"]), person(r), r.choice(talk.DAYS), r.randint(6, 22)
    return f"Put a {what} with {p} on {d} at {h} into my calendar.", [f"{what} with {p}", d, h], "ok", f"The {what} with {p} is on {d} at {h}.", ""


def light(r, kinds):
    room, on = r.choice("kitchen bedroom bathroom garden hall cellar attic office".split()), r.random() < 0.5
    word = "on" if on else "off"
    return r.choice([f"Turn {word} the light in the {room}.", f"Turn the {room} light {word}.", f"Light {word} in the {room}, please."]), [room, on], r.choice(["ok", json.dumps({"on": on})]), f"The light in the {room} is {word}.", ""


def door(r, kinds):
    which, state = r.choice("front back garage garden cellar".split()), r.choice(["open", "close", "lock"])
    done = {"open": "open", "close": "closed", "lock": "locked"}[state]
    return f"{talk.cap(state)} the {which} door.", [which, state], r.choice(["ok", done]), f"The {which} door is {done}.", ""


def heating(r, kinds):
    room, d = r.choice("kitchen bedroom bathroom hall office".split()), r.randint(10, 28)
    return r.choice([f"Set the {room} to {d} degrees.", f"Make the {room} {d} degrees warm."]), [room, d], r.choice(["ok", str(d)]), f"The {room} is set to {d} degrees.", ""


def task_list(r, kinds):
    task = r.choice(["buy milk", "feed the cat", "water the plants", "read a book", "clean the room", "buy " + thing(r), "call " + person(r), "find the " + thing(r)])
    return r.choice([f"Remind me to {task}.", f"Add {task} to my list."]), [task], r.choice(["ok", "added"]), f"I have added: {task}.", ""


def translate(r, kinds):
    w, to, out = thing(r), r.choice(kinds[1]["enum"]), invented(r)
    return r.choice([f"What is {w} in {to}?", f"Translate {w} into {to}."]), [w, to], r.choice([out, json.dumps({"text": out})]), f"In {to}, {w} is {out}.", w


def convert(r, kinds):
    n = number(r)
    a, b = r.sample(kinds[1]["enum"], 2)
    v = r.randint(1, 2000)
    return r.choice([f"Convert {n} {a} to {b}.", f"How many {b} are {n} {a}?", f"What is {n} {a} in {b}?"]), [n, a, b], r.choice([str(v), json.dumps({"result": v})]), f"{n} {a} are {v} {b}.", ""


def dice(r, kinds):
    top = r.choice([6, 8, 10, 12, 20, 100])
    v = r.randint(1, top)
    return r.choice([f"Roll a die with {top} sides.", f"Give me a random number up to {top}."]), [top], str(v), f"It is {v}.", ""


def clock(r, kinds):
    v = f"{r.randint(0, 23)}:{r.randint(0, 59):02}"
    return r.choice(["What time is it?", "How late is it?", "Tell me the time."]), [], r.choice([v, json.dumps({"time": v})]), f"It is {v}.", ""


def clock_in(r, kinds):
    c, v = place(r), f"{r.randint(0, 23)}:{r.randint(0, 59):02}"
    return r.choice([f"What time is it in {c}?", f"Tell me the time in {c}."]), [c], r.choice([v, json.dumps({"time": v})]), f"In {c} it is {v}.", c


def any_tool(r):
    """A tool nobody has heard of: its name and its parameters must be read from the system turn."""
    verb, noun = r.choice("get set make start stop check update create find send".split()), invented(r)
    kinds = {}
    for _ in range(r.randint(1, 3)):
        kinds[r.choice([invented(r), *"name id count mode size level title city value state".split()])] = r.choice([STRING, NUMBER, INTEGER, BOOLEAN, enum(*sorted({invented(r) for _ in range(3)}))])

    def ask():
        arguments = {}
        for key, kind in kinds.items():
            arguments[key] = (r.choice(kind["enum"]) if "enum" in kind else {"string": lambda: r.choice([person, code, thing])(r), "number": lambda: number(r), "integer": lambda: number(r), "boolean": lambda: r.random() < 0.5}[kind["type"]]())
        said = " and ".join(f"{k} {json.dumps(v) if isinstance(v, bool) else v}" for k, v in arguments.items())
        result = r.choice(["ok", code(r), str(number(r))])
        answer = f"The {noun} is done." if result == "ok" else f"The {noun} is {result}."
        return Question(r.choice([f"{talk.cap(verb)} the {noun} with {said}.", f"Please {verb} {noun}: {said}.", f"{talk.cap(verb)} {noun} for {said}."]), arguments, result, answer)

    return Tool(r.choice([f"{verb}_{noun}", f"{verb}{talk.cap(noun)}", f"{noun}_{verb}"]), r.choice([f"{talk.cap(verb)}s the {noun}.", f"To {verb} {talk.a(noun)}.", f"{talk.cap(noun)}."]), kinds, ask)


def some(*choices):
    return lambda r: enum(*r.sample(choices, r.randint(2, len(choices))))


OTHERS = [
    simple("get_weather|weather|weather_in", "Gets the weather of a city.|Weather in a place.|Tells the current weather.", [("city|place|location", STRING), ("unit|units", some("celsius", "fahrenheit"))], weather),
    simple("get_weather|weather|forecast", "Gets the weather of a city.|Weather in a place.|Tells the weather.", [("city|place|location", STRING)], weather_short),
    simple("set_timer|timer|start_timer", "Sets a timer.|Starts a timer.", [("minutes|duration", INTEGER)], timer),
    simple("send_message|message|tell", "Sends a message to a person.|Sends a text.", [("to|person|recipient", STRING), ("text|message|body", STRING)], message),
    simple("play_song|play|play_music", "Plays a song.|Plays music.", [("title|song", STRING)], song),
    simple("order|buy|order_item", "Orders things in a shop.|Buys something.", [("item|thing|product", STRING), ("count|amount|quantity", INTEGER)], order),
    simple("find_train|trains|search_train", "Finds a train.|Searches the timetable.", [("from|start", STRING), ("to|end|destination", STRING), ("day|date", STRING)], train),
    simple("add_event|new_event|calendar", "Adds an event to the calendar.|Makes an entry in the calendar.", [("title|event", STRING), ("day", STRING), ("hour|time", NUMBER)], event),
    simple("set_light|light|switch_light", "Turns a light on or off.|Switches a light.", [("room|place", STRING), ("on|state", BOOLEAN)], light),
    simple("door|set_door|move_door", "Opens, closes or locks a door.|Moves a door.", [("door|which|name", STRING), ("action|state|do", enum("open", "close", "lock"))], door),
    simple("set_temperature|heating", "Sets the temperature of a room.|Controls the heating.", [("room", STRING), ("degrees|temperature", NUMBER)], heating),
    simple("add_task|remind|todo", "Adds a task to the list.|Makes a note.", [("task|text", STRING)], task_list),
    simple("translate|dictionary", "Translates a word.|Translates a text.", [("text|word", STRING), ("to|language", some("French", "German", "Spanish", "Italian", "Polish"))], translate),
    simple("convert|convert_units", "Converts units.|Converts an amount.", [("amount|value", NUMBER), ("from", some("metres", "feet", "miles", "inches", "yards")), ("to", STRING)], convert),
    simple("roll|random|roll_die", "Rolls a die.|Gives a random number.", [("sides|max", INTEGER)], dice),
    simple("get_time|clock|now", "Tells the time.|Returns the current time.", [], clock),
    simple("get_time|time_in|clock", "Tells the time in a city.", [("city|place", STRING)], clock_in),
    any_tool, any_tool, any_tool, any_tool,
]
