# SPDX-License-Identifier: Apache-2.0
"""Dialogues, JSON records and tool calls, made by small generators.

A dialogue is a list of (role, content); make_corpus.py decides what becomes of it. JSON is always made by
json.dumps from values, never by hand. Stories asked for in a dialogue come from stories.py.
"""
import json

import stories
import words

NUMBER = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
          "eighteen nineteen twenty").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
COLOUR_OF = {"the sky": "blue", "grass": "green", "snow": "white", "a lemon": "yellow", "a carrot": "orange", "coal": "black", "a tomato": "red", "the sun": "yellow",
             "milk": "white", "a banana": "yellow", "a leaf": "green", "chocolate": "brown", "a strawberry": "red", "a cloud": "white", "a frog": "green", "a flamingo": "pink",
             "an elephant": "grey", "a pumpkin": "orange", "a crow": "black", "blood": "red", "sand": "yellow", "a plum": "purple"}
# animal: sound, home, young, legs, food
ANIMALS = {"dog": ("woof", "a kennel", "a puppy", 4, "meat"), "cat": ("meow", "a house", "a kitten", 4, "fish"), "cow": ("moo", "a barn", "a calf", 4, "grass"), "duck": ("quack", "a pond", "a duckling", 2, "water plants"),
           "sheep": ("baa", "a field", "a lamb", 4, "grass"), "pig": ("oink", "a sty", "a piglet", 4, "almost anything"), "hen": ("cluck", "a henhouse", "a chick", 2, "grain"), "horse": ("neigh", "a stable", "a foal", 4, "hay"),
           "bee": ("buzz", "a hive", "a larva", 6, "nectar"), "frog": ("ribbit", "a pond", "a tadpole", 4, "flies"), "owl": ("hoot", "a tree", "an owlet", 2, "mice"), "lion": ("roar", "the grassland", "a cub", 4, "meat"),
           "bear": ("growl", "a den", "a cub", 4, "honey and fish"), "spider": ("nothing", "a web", "a spiderling", 8, "flies"), "mouse": ("squeak", "a hole", "a pup", 4, "seeds"), "rabbit": ("almost nothing", "a burrow", "a kit", 4, "grass and carrots"),
           "goat": ("maa", "a farm", "a kid", 4, "grass and leaves"), "fox": ("yip", "a den", "a cub", 4, "mice and berries"), "bird": ("tweet", "a nest", "a chick", 2, "seeds and worms"), "ant": ("nothing", "an ant hill", "a larva", 6, "crumbs")}
OPPOSITES = [("big", "small"), ("hot", "cold"), ("up", "down"), ("day", "night"), ("happy", "sad"), ("fast", "slow"), ("old", "young"), ("wet", "dry"), ("open", "closed"), ("light", "dark"),
             ("full", "empty"), ("hard", "soft"), ("loud", "quiet"), ("early", "late"), ("long", "short"), ("heavy", "light"), ("left", "right"), ("in", "out"), ("rich", "poor"), ("clean", "dirty"), ("near", "far"), ("strong", "weak")]
CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "England": "London", "Japan": "Tokyo", "China": "Beijing", "Egypt": "Cairo", "Greece": "Athens", "Norway": "Oslo", "Sweden": "Stockholm",
            "Portugal": "Lisbon", "Austria": "Vienna", "Poland": "Warsaw", "Ireland": "Dublin", "Canada": "Ottawa", "Russia": "Moscow", "Finland": "Helsinki", "Kenya": "Nairobi", "Peru": "Lima", "Cuba": "Havana", "Hungary": "Budapest"}
CITIES = sorted(CAPITALS.values()) + ["Boston", "Chicago", "Sydney", "Milan", "Hamburg", "Lyon", "Porto", "Seattle", "Toronto", "Mumbai"]
FRUITS = "apple banana pear cherry grape lemon orange peach plum strawberry melon".split()
LISTS = {"animals": "dog cat horse cow lion bear fox owl duck frog mouse goat".split(), "fruits": FRUITS, "colours": words.COLOURS[:10], "vegetables": "carrot potato onion tomato bean pea cabbage pumpkin".split(),
         "toys": "ball kite doll drum puppet train puzzle".split(), "days of the week": DAYS, "months": MONTHS, "seasons": "spring summer autumn winter".split(),
         "things in a kitchen": "pot pan spoon cup plate oven table".split(), "things in the sky": ["the sun", "the moon", "a star", "a cloud", "a bird", "a kite"], "musical instruments": "drum flute piano guitar violin trumpet".split()}
WHY = [("Why is the sky blue?", "Sunlight has all colours in it, and the air spreads the blue light the most."), ("Why do we sleep?", "We sleep so that our body and our mind can rest."),
       ("Why does it rain?", "Water rises into the air, becomes clouds, and falls down again as rain."), ("Why do birds fly south?", "Many birds fly south in winter because it is warmer there and they find more food."),
       ("Why do leaves fall?", "In autumn trees save water and strength, so they let their leaves fall."), ("What is a rainbow?", "A rainbow is sunlight that rain drops split into many colours."),
       ("What is snow?", "Snow is frozen water that falls from the clouds in small crystals."), ("Why is ice cold?", "Ice is frozen water, and it takes the warmth out of your hand."),
       ("What do bees make?", "Bees make honey and wax."), ("Where does milk come from?", "Most milk comes from cows."), ("What is bread made of?", "Bread is made of flour, water, salt and yeast."),
       ("How does a plant grow?", "A plant needs water, light and good earth to grow."), ("What is the moon?", "The moon is a big ball of rock that goes around the earth."), ("What is the sun?", "The sun is a star. It gives us light and warmth."),
       ("How many legs does a spider have?", "A spider has eight legs."), ("How many days are in a week?", "There are seven days in a week."), ("How many months are in a year?", "There are twelve months in a year."),
       ("How many hours are in a day?", "There are twenty-four hours in a day."), ("How many minutes are in an hour?", "There are sixty minutes in an hour."), ("What do we use an umbrella for?", "We use an umbrella to stay dry in the rain."),
       ("What is a library?", "A library is a place where you can read and borrow books."), ("What does a baker do?", "A baker makes bread and cakes."), ("What does a doctor do?", "A doctor helps people who are ill."),
       ("What does a farmer do?", "A farmer grows food and looks after animals."), ("What does a teacher do?", "A teacher helps children to learn."), ("Is the earth flat?", "No, the earth is round, like a ball."),
       ("Can fish walk?", "No, fish swim. They have fins and no legs."), ("Can a penguin fly?", "No, a penguin can not fly, but it swims very well."), ("What is the biggest animal?", "The blue whale is the biggest animal of all."),
       ("What should I do when I am sad?", "Talk to somebody you trust. It often helps to share how you feel."), ("How do I make a friend?", "Be kind, ask questions, and share something you like."), ("I can not sleep. What should I do?", "Breathe slowly, think of a quiet place, and let your eyes rest.")]
LIKES = ["rain", "snow", "music", "cats", "dogs", "books", "the sea", "winter", "summer", "stories", "cakes", "the moon", "trees", "games", "birds", "the dark", "numbers", "school"]
SYSTEMS = ["You are a helpful assistant.", "You are a friendly storyteller.", "You answer in one short sentence.", "You are a kind teacher.", "Answer the question.", "You are a helpful assistant who likes stories."]


def a(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def cap(text):
    return text[0].upper() + text[1:]


def name(r):
    return r.choice(words.GIRLS + words.BOYS)


def wrap(r, number):
    return str(number) if r.random() < 0.7 or number > 20 else NUMBER[number]


def greet(r):
    me = name(r)
    return r.choice([
        lambda: (r.choice(["Hello!", "Hi!", "Hello", "Hi", "Hey!", "Good morning!", "Hello there!", "Good evening!"]), r.choice(["Hello! How can I help you?", "Hi! What would you like to talk about?", "Hello! It is nice to meet you.", "Hi there! Shall I tell you a story?"])),
        lambda: (r.choice(["How are you?", "Hello, how are you?", "How are you today?"]), r.choice(["I am fine, thank you. How are you?", "I am well, thank you!", "Very well, thank you. What can I do for you?"])),
        lambda: (r.choice([f"My name is {me}.", f"I am {me}.", f"Hi, I am {me}."]), r.choice([f"Hello, {me}! It is nice to meet you.", f"Nice to meet you, {me}!", f"Hi {me}! What can I do for you?"])),
        lambda: (r.choice(["Who are you?", "What are you?", "What is your name?"]), r.choice(["I am a small language model. I tell stories and answer simple questions.", "I am a little model that likes to tell stories."])),
        lambda: (r.choice(["What can you do?", "How can you help me?"]), "I can tell stories, answer simple questions, add small numbers and write JSON."),
        lambda: (r.choice(["Thank you!", "Thanks!", "Thank you very much."]), r.choice(["You are welcome!", "You are welcome. Come back soon!", "I am glad that I could help."])),
        lambda: (r.choice(["Goodbye!", "Bye!", "Good night!", "See you!"]), r.choice(["Goodbye! Have a nice day.", "Bye! See you soon.", "Goodbye, and sleep well."])),
    ])()


def sums(r):
    x, y = r.randint(0, 12), r.randint(0, 12)
    kind = r.random()
    if kind < 0.35:
        q = r.choice([f"What is {wrap(r, x)} plus {wrap(r, y)}?", f"{x} + {y} = ?", f"How much is {x} + {y}?", f"Add {x} and {y}.", f"What is {x} + {y}?"])
        return q, r.choice([f"{x} plus {y} is {x + y}.", f"{x} + {y} = {x + y}", f"The answer is {x + y}."])
    if kind < 0.6:
        x, y = max(x, y), min(x, y)
        q = r.choice([f"What is {wrap(r, x)} minus {wrap(r, y)}?", f"{x} - {y} = ?", f"How much is {x} - {y}?", f"Take {y} away from {x}."])
        return q, r.choice([f"{x} minus {y} is {x - y}.", f"{x} - {y} = {x - y}", f"The answer is {x - y}."])
    if kind < 0.72:
        x, y = r.randint(0, 10), r.randint(1, 10)
        return r.choice([f"What is {x} times {y}?", f"{x} * {y} = ?"]), r.choice([f"{x} times {y} is {x * y}.", f"The answer is {x * y}."])
    who, thing = name(r), r.choice(["apples", "marbles", "coins", "books", "shells", "pears", "balloons", "cookies"])
    if kind < 0.86:
        x, y = r.randint(1, 10), r.randint(1, 9)
        return (f"{who} has {wrap(r, x)} {thing} and {r.choice(['gets', 'finds', 'buys'])} {wrap(r, y)} more. How many {thing} does {who} have now?",
                r.choice([f"{who} has {x + y} {thing} now.", f"{x} + {y} = {x + y}, so {who} has {x + y} {thing}."]))
    if kind < 0.94:
        x = r.randint(2, 12)
        y = r.randint(1, x - 1)
        return (f"{who} has {wrap(r, x)} {thing} and {r.choice(['loses', 'gives away'])} {wrap(r, y)}. How many are left?", r.choice([f"{x - y} {thing} are left.".replace("1 " + thing + " are", "1 of the " + thing + " is"), f"{x} - {y} = {x - y}, so {x - y} left."]))
    x, y = r.sample(range(100), 2)
    return f"Which is bigger, {x} or {y}?", f"{max(x, y)} is bigger than {min(x, y)}."


def practice(r):
    """Some sums, one after the other."""
    return [turn for _ in range(r.choice([1, 1, 2, 3, 5, 8])) for turn in zip(("user", "assistant"), sums(r))]


def fact(r):
    kind = r.random()
    if kind < 0.18:
        thing, colour = r.choice(sorted(COLOUR_OF.items()))
        return r.choice([f"What colour is {thing}?", f"Which colour does {thing} have?"]), r.choice([f"{cap(thing)} is {colour}.", f"It is {colour}."])
    if kind < 0.42:
        animal, (sound, home, young, legs, food) = r.choice(sorted(ANIMALS.items()))
        return r.choice([(f"What does {a(animal)} say?", f"{cap(a(animal))} says {sound}."), (f"Where does {a(animal)} live?", f"{cap(a(animal))} lives in {home}."),
                         (f"What is a young {animal} called?", f"A young {animal} is called {young}."), (f"How many legs does {a(animal)} have?", f"{cap(a(animal))} has {NUMBER[legs]} legs."),
                         (f"What does {a(animal)} eat?", f"{cap(a(animal))} eats {food}.")])
    if kind < 0.56:
        i = r.randrange(7)
        return r.choice([(f"What day comes after {DAYS[i]}?", f"{DAYS[(i + 1) % 7]} comes after {DAYS[i]}."), (f"What day is before {DAYS[i]}?", f"{DAYS[i - 1]} is before {DAYS[i]}."),
                         (f"Today is {DAYS[i]}. What day is tomorrow?", f"Tomorrow is {DAYS[(i + 1) % 7]}."), (f"Today is {DAYS[i]}. What day was yesterday?", f"Yesterday was {DAYS[i - 1]}.")])
    if kind < 0.63:
        i = r.randrange(12)
        return r.choice([(f"Which month comes after {MONTHS[i]}?", f"{MONTHS[(i + 1) % 12]} comes after {MONTHS[i]}."), (f"Which month is before {MONTHS[i]}?", f"{MONTHS[i - 1]} is before {MONTHS[i]}.")])
    if kind < 0.73:
        pair = list(r.choice(OPPOSITES))
        r.shuffle(pair)
        return f"What is the opposite of {pair[0]}?", f"The opposite of {pair[0]} is {pair[1]}."
    if kind < 0.83:
        country, city = r.choice(sorted(CAPITALS.items()))
        return r.choice([(f"What is the capital of {country}?", f"The capital of {country} is {city}."), (f"Where is {city}?", f"{city} is in {country}.")])
    if kind < 0.9:
        topic = r.choice(sorted(LISTS))
        few = r.sample(LISTS[topic], 3)
        return r.choice([f"Name three {topic}.", f"List three {topic}.", f"Tell me three {topic}."]), f"{cap(few[0])}, {few[1]} and {few[2]}."
    return r.choice(WHY)


def opinion(r):
    thing = r.choice(LIKES)
    kind = r.random()
    if kind < 0.5:
        return f"Do you like {thing}?", r.choice([f"Yes, I like {thing} very much.", f"I do! A good story often has {thing} in it.", f"I am only a small model, but I think {thing} can be wonderful.", f"Yes! What do you like about {thing}?"])
    if kind < 0.75:
        x, y = r.sample(LIKES, 2)
        return f"What do you like more, {x} or {y}?", r.choice([f"I like {x} more, but {y} can be nice too.", f"I think I like {y} more.", f"That is hard to say. I like {x} and {y}."])
    return r.choice([("What is your favourite colour?", "My favourite colour is " + r.choice(words.COLOURS) + "."), ("What is your favourite animal?", "I like the " + r.choice(words.SPECIES) + " best."),
                     ("Do you want to play?", "Yes! Let us make up a story together."), ("I am sad.", "I am sorry to hear that. Do you want to tell me why?"), ("I am happy today!", "That is wonderful! What made you happy?"),
                     ("I am bored.", "Shall I tell you a story?"), ("I am hungry.", "Maybe you can eat an apple or some bread.")])


def recall(r):
    """A few statements and a question about one of them: the answer is in the text."""
    people = r.sample(words.GIRLS + words.BOYS, 3)
    kind = r.randrange(3)
    if kind == 0:
        things = [f"{r.choice(words.COLOURS)} {n}" for n in r.sample([t[0] for t in words.TOYS], 3)]
        text = " ".join(f"{p} has {a(t)}." for p, t in zip(people, things))
        i = r.randrange(3)
        return r.choice([(f"{text} What does {people[i]} have?", f"{people[i]} has {a(things[i])}."), (f"{text} Who has the {things[i]}?", f"{people[i]} has the {things[i]}.")])
    if kind == 1:
        places = [f"{p[1]} {p[0]}" for p in r.sample(words.PLACES, 3)]
        text = " ".join(f"{p} is {t}." for p, t in zip(people, places))
        i = r.randrange(3)
        return f"{text} Where is {people[i]}?", f"{people[i]} is {places[i]}."
    x, y, z = people
    text = f"{x} is taller than {y}. {y} is taller than {z}."
    return r.choice([(text + " Who is the tallest?", f"{x} is the tallest."), (text + " Who is the smallest?", f"{z} is the smallest.")])


def sequence(r):
    kind = r.randrange(5)
    if kind == 0:
        start = r.randint(0, 20)
        step = r.choice([1, 1, 2, 5, 10])
        row = [start + step * i for i in range(6)]
        return r.choice(["What comes next: ", "Go on: "]) + ", ".join(map(str, row[:4])), ", ".join(map(str, row[4:])) if r.random() < 0.5 else str(row[4])
    if kind == 1:
        y = r.randint(3, 10)
        return r.choice([f"Count to {y}.", f"Please count from 1 to {y}."]), ", ".join(str(i) for i in range(1, y + 1))
    if kind == 2:
        few = r.sample(r.choice(sorted(LISTS.values())), 3)
        return "Repeat these words: " + " ".join(few), " ".join(few)
    if kind == 3:
        few = r.sample(r.choice(sorted(LISTS.values())), 4)
        return r.choice([(f"What is the first word of: {' '.join(few)}?", few[0]), (f"What is the last word of: {' '.join(few)}?", few[-1])])
    word = r.choice(FRUITS + [t[0] for t in words.TOYS] + words.SPECIES)
    return r.choice([(f"Use the word {word} in a sentence.", r.choice([f"There is {a(word)} in the garden.", f"{name(r)} saw {a(word)} today.", f"I would like to have {a(word)}.", f"The {word} is behind the house."])),
                     (f"Write one sentence about {a(word)}.", r.choice([f"The {word} was {r.choice(['small', 'big', 'old', 'new', 'lovely', 'strange'])}.", f"{cap(a(word))} stood by the door."]))])


def ask_story(r, drill=False):
    kind = r.random()
    if kind < 0.25 and not drill:
        topic, want = "", None
        q = r.choice(["Tell me a story.", "Please tell me a story.", "Can you tell me a story?", "Tell me a bedtime story.", "I would like to hear a story.", "Write a short story."])
    else:
        if kind < 0.5:
            want = {"noun": r.choice(words.TOYS)[0]}
            if r.random() < 0.6:
                want["adjective"] = r.choice(words.COLOURS + ["little", "old", "shiny", "magic"])
            topic = a((want.get("adjective", "") + " " + want["noun"]).strip())
        elif kind < 0.75:
            want = {"species": r.choice(words.SPECIES)}
            topic = a(want["species"])
            if r.random() < 0.4:
                want["name"] = r.choice(words.ANIMAL_NAMES)
                topic += " " + r.choice(["named", "called"]) + " " + want["name"]
        elif kind < 0.88:
            want = {"name": name(r)}
            topic = ("a girl" if want["name"] in words.GIRLS else "a boy") + " " + r.choice(["named", "called"]) + " " + want["name"]
        else:
            want = {"name": name(r), "noun": r.choice(words.TOYS)[0]}
            topic = f"{want['name']} and {a(want['noun'])}"
        q = r.choice([f"Tell me a story about {topic}.", f"Can you tell me a story about {topic}?", f"Write a story about {topic}.", f"Please tell me a story about {topic}.", f"I want a story about {topic}.", f"Write a short story about {topic}."])
    t = stories.tell(r, want)
    talk = [("user", q), ("assistant", t.title + "\n\n" + t.story if r.random() < 0.15 else t.story)]
    h, f, o = (t.names.get(x) for x in "hfo")
    asked = [("Who is the story about?", f"It is about {h}."), ("What is the name of the hero?", f"The hero is called {h}."),
             (f"What kind of person is {h}?", f"{h} is {a(h.trait)} {h.species or h.boy}.") if h.trait else ("Did you like the story?", "Yes, I like stories with a good ending."),
             ("Can you give it a title?", t.title), ("What would be a good title?", f"A good title is: {t.title}")]
    if f and h.name != f.name and f" {f}" in t.story:
        asked.append((f"Who is {h}'s friend?", f"{h}'s friend is {f}.") if t.names["f"].kind != "grown-up" else asked[0])
    if o and o.full in t.story:
        asked.append((f"What colour was the {o.noun}?", f"The {o.noun} was {o.adjective}.") if o.adjective in words.COLOURS else (f"Was there a {o.noun} in the story?", f"Yes, there was {o.a}."))
    while r.random() < 0.3:
        talk += zip(("user", "assistant"), r.choice(asked))
    return talk


def record(r):
    """(what it is, value) of a small JSON-able thing."""
    person = name(r)
    colour = r.choice(words.COLOURS)
    kind = r.randrange(12)
    if kind == 0:
        age = r.randint(3, 90)
        city = r.choice(CITIES)
        full = {"name": person, "age": age, "city": city}
        return f"a person named {person}, {age} years old, from {city}", full
    if kind == 1:
        age, pet = r.randint(1, 15), r.choice(words.ANIMAL_NAMES)
        kind_ = r.choice(sorted(ANIMALS))
        return f"{a(kind_)} named {pet} that is {age} years old", {"name": pet, "species": kind_, "age": age}
    if kind == 2:
        fruit, count, price = r.choice(FRUITS), r.randint(1, 20), r.randint(1, 99)
        return f"an order of {count} {fruit} pieces at {price} cents each", {"item": fruit, "count": count, "price": price, "total": count * price} if r.random() < 0.3 and count * price < 100 else {"item": fruit, "count": count, "price": price}
    if kind == 3:
        toy = r.choice(words.TOYS)[0]
        new = r.random() < 0.5
        return f"a {colour} {toy} that is {'new' if new else 'not new'}", {"type": toy, "color": colour, "new": new}
    if kind == 4:
        city, degrees = r.choice(CITIES), r.randint(-10, 35)
        sky = r.choice(["sunny", "cloudy", "rainy", "snowy", "windy"])
        return f"the weather in {city}: {degrees} degrees and {sky}", {"city": city, "temperature": degrees, "sky": sky}
    if kind == 5:
        few = r.sample(FRUITS, r.randint(2, 4))
        return "a list of fruits: " + ", ".join(few), {"fruits": few}
    if kind == 6:
        x, y = r.randint(0, 100), r.randint(0, 100)
        return f"a point at x {x} and y {y}", {"x": x, "y": y}
    if kind == 7:
        title = stories.story(r)[0]
        pages = r.randint(8, 300)
        return f"a book called {title} by {person} with {pages} pages", {"title": title, "author": person, "pages": pages}
    if kind == 8:
        day, hour = r.choice(DAYS), r.randint(7, 20)
        what = r.choice(["party", "lesson", "meeting", "picnic", "concert", "visit"])
        return f"a {what} on {day} at {hour}:00 with {person}", {"event": what, "day": day, "time": f"{hour}:00", "with": person}
    if kind == 9:
        other = name(r)
        return f"a message from {person} to {other} saying hello", {"from": person, "to": other, "text": "hello"}
    if kind == 10:
        friends = r.sample(words.GIRLS + words.BOYS, r.randint(1, 3))
        return f"{person} with the friends " + " and ".join(friends), {"name": person, "friends": friends}
    country, city = r.choice(sorted(CAPITALS.items()))
    return f"the country {country} with the capital {city}", {"country": country, "capital": city}


def dump(r, value):
    return json.dumps(value, indent=2) if r.random() < 0.2 else json.dumps(value)


def ask_json(r):
    what, value = record(r)
    keys = ", ".join(value)
    q = r.choice([f"Return JSON for {what}.", f"Give me JSON for {what}.", f"Write JSON with the keys {keys} for {what}.", f"Return a JSON object for {what}. Use the keys {keys}.", f"Make a JSON record of {what}.", f"JSON for {what}, please."])
    return q, json.dumps(value)


def text_json(r):
    """A plain document of JSON: a record, a list of records of one kind, or a nested one."""
    kind = r.random()
    if kind < 0.35:
        return "\n".join(json.dumps(record(r)[1]) for _ in range(r.randint(1, 6)))
    if kind < 0.7:
        first = record(r)[1]
        rows = [first]
        while len(rows) < 4:
            value = record(r)[1]
            if value.keys() == first.keys():
                rows.append(value)
        return dump(r, rows[:r.randint(2, 4)])
    person = name(r)
    value = {"id": r.randint(1, 999), "name": person, "active": r.random() < 0.5}
    if r.random() < 0.6:
        value["address"] = {"city": r.choice(CITIES), "street": r.choice(["Mill", "Park", "Hill", "Lake", "Rose", "Oak", "River"]) + " Road", "number": r.randint(1, 99)}
    if r.random() < 0.5:
        value["pets"] = [{"name": r.choice(words.ANIMAL_NAMES), "species": r.choice(sorted(ANIMALS))} for _ in range(r.randint(0, 2))]
    if r.random() < 0.4:
        value["tags"] = r.sample(words.TRAITS, r.randint(1, 3))
    if r.random() < 0.3:
        value["email"] = r.choice([None, person.lower() + "@example.com"])
    return dump(r, value)


def tools(r):
    """The tools a system turn may offer: name, description, parameters, and a maker of (question, arguments)."""
    x, y = r.randint(0, 50), r.randint(0, 50)
    city, person, day = r.choice(CITIES), name(r), r.choice(DAYS)
    hour, minutes = r.randint(6, 22), r.choice([1, 2, 3, 5, 10, 15, 20, 30, 45, 60])
    song = r.choice(["River Song", "Green Hill", "Little Star", "Morning Bells", "The Old Mill"])
    word = r.choice([t[0] for t in words.TOYS] + FRUITS)
    thing, count = r.choice(FRUITS), r.randint(1, 12)
    other = r.choice([c for c in CITIES if c != city])
    task = r.choice(["buy milk", "feed the cat", "water the plants", "call grandma", "read a book", "clean the room"])
    room = r.choice(["kitchen", "bedroom", "bathroom", "garden", "hall"])
    return [
        ("get_weather", "Gets the weather of a city.", {"city": "string"}, r.choice([f"What is the weather in {city}?", f"Is it raining in {city}?", f"How is the weather in {city}?"]), {"city": city}),
        ("add", "Adds two numbers.", {"a": "number", "b": "number"}, r.choice([f"Add {x} and {y}.", f"What is {x} plus {y}?"]), {"a": x, "b": y}),
        ("set_timer", "Sets a timer.", {"minutes": "number"}, r.choice([f"Set a timer for {minutes} minutes.", f"Wake me in {minutes} minutes."]), {"minutes": minutes}),
        ("send_message", "Sends a message to a person.", {"to": "string", "text": "string"}, f"Tell {person} to {task}.", {"to": person, "text": task}),
        ("play_song", "Plays a song.", {"title": "string"}, r.choice([f"Play {song}.", f"I want to hear {song}."]), {"title": song}),
        ("find_word", "Looks up a word.", {"word": "string"}, r.choice([f"What does the word {word} mean?", f"Look up {word}."]), {"word": word}),
        ("order", "Orders things in a shop.", {"item": "string", "count": "number"}, r.choice([f"Order {count} {thing} for me.", f"Please buy {count} {thing}."]), {"item": thing, "count": count}),
        ("find_train", "Finds a train.", {"from": "string", "to": "string", "day": "string"}, f"Find a train from {city} to {other} on {day}.", {"from": city, "to": other, "day": day}),
        ("add_event", "Adds an event to the calendar.", {"title": "string", "day": "string", "hour": "number"}, f"Put a visit of {person} on {day} at {hour} into my calendar.", {"title": f"visit of {person}", "day": day, "hour": hour}),
        ("set_light", "Turns a light on or off.", {"room": "string", "on": "boolean"}, *r.choice([(f"Turn on the light in the {room}.", {"room": room, "on": True}), (f"Turn off the light in the {room}.", {"room": room, "on": False})])),
        ("add_task", "Adds a task to the list.", {"task": "string"}, r.choice([f"Remind me to {task}.", f"Add {task} to my list."]), {"task": task}),
    ]


def ask_tool(r):
    offered = r.sample(tools(r), r.randint(1, 4))
    listing = json.dumps([{"name": t[0], "description": t[1], "parameters": t[2]} for t in offered])
    head = r.choice(["You can call these tools: ", "Tools: ", "You have these tools: "])
    talk = [("system", head + listing)]
    if r.random() < 0.15:
        talk += zip(("user", "assistant"), greet(r))
    for one in r.sample(offered, min(len(offered), r.choice([1, 1, 1, 2]))):
        talk += [("user", one[3]), ("assistant", json.dumps({"name": one[0], "arguments": one[4]}))]
    if r.random() < 0.1:
        talk += zip(("user", "assistant"), greet(r))
    return talk


def chat(r, drill=False, tools=True):
    kind = r.random()
    if tools and kind < (0.1 if drill else 0.17):
        return ask_tool(r)
    talk = [("system", r.choice(SYSTEMS))] if r.random() < 0.25 else []
    makers = [greet, sums, fact, opinion, recall, ask_json, sequence]
    if kind < (0.45 if drill else 0.40):
        if r.random() < 0.2:
            talk += zip(("user", "assistant"), greet(r))
        talk += ask_story(r, drill)
        if r.random() < 0.25:
            talk += r.choice([[("user", "Thank you!"), ("assistant", "You are welcome! I am glad that you liked the story.")],
                              [("user", "I liked it."), ("assistant", "I am glad! Shall I tell you another one?")]])
        return talk
    for _ in range(r.choice([1, 1, 2, 2, 3, 4, 5])):
        talk += zip(("user", "assistant"), r.choices(makers, [2, 12 if drill else 3, 4, 1.5, 2, 2.5, 1.5])[0](r))
    return talk
