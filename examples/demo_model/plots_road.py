# SPDX-License-Identifier: Apache-2.0
"""Plots on the road and of wonder: quests with things gained and used, riddles, dragons, robots, treasure.

The same conventions as plots_home.py.
"""
from teller import *

RIDDLES = [
    ("What has hands but can not clap?", "a clock"), ("What has teeth but can not bite?", "a comb"), ("What gets wetter the more it dries?", "a towel"),
    ("What has one eye but can not see?", "a needle"), ("What goes up but never comes down?", "your age"), ("What has a neck but no head?", "a bottle"),
    ("What can you catch but not throw?", "a cold"), ("What runs but never walks?", "water"), ("What is full of holes but still holds water?", "a sponge"),
    ("What has four legs but can not walk?", "a table"), ("What has leaves but is not a tree?", "a book"), ("What comes down but never goes up?", "rain"),
    ("What follows you all day and leaves at night?", "your shadow"), ("What has a bed but never sleeps?", "a river"), ("What must you break before you can use it?", "an egg"),
    ("What is yours, but others use it more than you do?", "your name"), ("What can fill a room but takes up no space?", "light"), ("What grows when you feed it and dies when you give it water?", "fire")]

# trouble at home, what can end it, where that is, how it ends
TROUBLES = [
    ("the village well was dry", "a drop of water from the first spring", "at the top of the mountain", "{h} let the drop fall into the well. There was a deep sound, and clear water rose up to the top"),
    ("{m} was ill and could not get up", "a leaf of the silver herb", "behind the dark forest", "{h} made tea from the silver leaf. {m} drank it, slept all night and woke up well"),
    ("winter would not end", "a spark of the summer fire", "in the cave of the winds", "{h} held up the spark. The snow began to melt, and the first flowers came out"),
    ("the great bell of the village had lost its voice", "the golden hammer", "in the tower on the rock", "{h} struck the bell with the golden hammer. It rang so loud that the birds flew up from every roof"),
    ("all the colours were fading away", "a feather of the rainbow bird", "on the island in the lake", "{h} waved the feather, and red and blue and green came back to every house and flower"),
    ("nobody could sleep any more", "a pebble from the moon pond", "at the end of the long valley", "{h} put the pebble on the well in the square. Soon everyone yawned and slept soundly"),
    ("the stars did not come out at night", "the key of the sky", "in the house above the clouds", "{h} turned the key in the air, and one by one the stars came out"),
    ("the bread would not rise", "a cup of old yeast", "in the mill of the giant", "{h} gave the cup to the baker. The next morning the whole village smelled of fresh bread"),
    ("nobody could laugh any more", "the joke of the wise toad", "in the middle of the swamp", "{h} whispered the joke to {m}. {m} laughed, and soon the whole street was laughing"),
    ("the sheep had stopped giving wool", "a handful of blue clover", "on the far meadow", "{h} fed the clover to the sheep, and by evening their wool was thick and soft")]

# one who needs something, what is given in return, how that helps later: (helped, gift, obstacle, use)
GIFTS = [
    ("an old woman who could not carry her wood", "carried the wood to her door", "a long rope", "the bridge over the gorge was broken", "tied the long rope to a tree and swung across"),
    ("a bird whose nest had fallen down", "put the nest back into the tree", "a bright feather", "there was a wall without a door", "held up the bright feather, and the birds came and lifted {h.him} over the wall"),
    ("a boy who was hungry", "shared the bread with him", "a little whistle", "a big dog stood in the way and growled", "blew the little whistle, and the dog sat down and wagged its tail"),
    ("an ant who had lost its way", "carried it back to the ant hill", "a grain of sugar", "the ground was covered with a thousand seeds, and a voice said, \"Sort them or go back!\"", "put down the grain of sugar, and all the ants came and sorted the seeds"),
    ("a blacksmith who needed help with the fire", "blew into the fire until it was hot", "an iron key", "there was a heavy gate with a lock", "put the iron key into the lock, and the gate opened"),
    ("a fisherman whose net was full of knots", "untied every knot", "a small lamp", "the way went through a dark tunnel", "lit the small lamp and walked on without fear"),
    ("a tired old horse", "brought it fresh water", "a warm blanket", "an icy wind blew, so cold that the trees cracked", "put on the warm blanket and walked through the wind"),
    ("a lost little goat", "took it back to its mother", "a jug of milk", "a hungry giant sat in the middle of the road", "gave the jug of milk to the giant, and the giant let {h.him} pass"),
    ("a musician with a broken string", "found a new string", "a song", "a dragon lay in front of the path", "sang the song, and the dragon closed its eyes and slept"),
    ("a girl who had dropped her pennies", "picked up every penny", "a silver coin", "a ferryman would not row without pay", "gave the silver coin to the ferryman, and he rowed {h.him} over")]


def plot_quest(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    trouble, cure, where, after = t.pick(TROUBLES)
    n["cure"] = cure
    opening(t)
    t.tell("[One year|One day|That year], {h.his} village was in trouble: ".replace("{h.his}", "the") + t.fill(trouble) + ".")
    teller_ = n["w"] = t.villager()
    t.say("w", t.pick([f"Only {cure} can help us. It is {where}.", f"There is one cure: {cure}. But it is {where}, and nobody dares to go."]))
    t.say("h", t.pick(["I will go and get it.", "Then I will go!", "Let me try."]))
    t.tell("{m} [gave {h.him} some bread and a kiss|packed some bread for {h.him}|hugged {h.him} for a long time], and {h} [set out|left] [at sunrise|the next morning|at once].")
    steps = t.random.sample(GIFTS, 2 if t.chance(0.6) else 1)
    t.para()
    for i, (who, did, gift, _, _) in enumerate(steps):
        t.tell(t.pick(["[On the way|Soon|After an hour], {h.he} met ", "[By the road|Under a tree|At a crossing] {h.he} saw "] if i == 0 else ["A little later {h.he} met ", "[Farther on|That afternoon] there was "]) + who + ".")
        t.tell(t.pick(["{h} was in a hurry, but {h.he} stopped and ", "{h} " , "\"I have time to help,\" said {h}, and {h.he} "]) + did + ".",
               t.pick(["As thanks, {h.he} got " + ("an " if gift[0] in "aeiou" and not gift.startswith(("an ", "a ")) else "") + gift + ".", "\"Take this,\" was the answer. \"You may need it.\" It was " + gift + "."]))
    t.para()
    order = steps[:]
    t.random.shuffle(order)
    for i, (_, _, gift, obstacle, use) in enumerate(order):
        t.tell(t.pick(["[Then|At last] {h} came to a place where ", "But [soon|now] "] if i == 0 else ["And then ", "A mile later "]) + obstacle + ".",
               t.pick(["{h} [did not know what to do|almost turned back]. Then {h.he} remembered " + gift.replace("a ", "the ", 1).replace("an ", "the ", 1) + ".", "{h} thought for a moment.", "\"What now?\" thought {h}."]),
               "{h.He} " + use + ".")
    t.tell(f"And there, {where}, {{h}} [found|saw] what {{h.he}} was looking for: {cure}. {{h.He}} [took it with great care|put it in {{h.his}} pocket and turned around|held it close to {{h.his}} heart].")
    t.para()
    t.tell("The way home [seemed short|was long, but {h} sang all the way].", "[Everyone|The whole village] was waiting.", after + ".")
    t.say("m", t.pick(["I knew that you could do it.", "You saved us all!", "How did you do it?"]))
    t.say("h", t.pick(["I did not do it alone. Everyone I met on the road helped me.", "I only stopped to help, and then help came to me."]))
    if t.chance(0.5):
        feel(t, "h", t.pick(["proud", "happy"]))
    moral(t, "help")
    goodbye(t)
    return t.pick(["{h}'s Journey", "The Long Road", "{h} Saves the Village", "{h} and " + " ".join(w if w in ("of", "the", "a", "from") else w.capitalize() for w in cure.split())])


def plot_riddle(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    n["guard"] = t.pick(["a troll", "an old giant", "a sphinx", "a grumpy goblin", "a talking stone", "a big black raven"])
    n["the"] = "the " + n["guard"].split()[-1]
    gate = t.pick([("the bridge", "cross it", "on the other side"), ("the gate of the garden", "go in", "in the garden"), ("the mountain pass", "go through", "behind the pass"), ("the door of the tower", "enter", "in the tower")])
    n["gate"], n["cross"], n["beyond"] = gate
    goal = t.pick(["{f} was waiting for {h.him}", "the best berries grew", "{h.his} grandma lived", "{h.his} lost kitten had run", "there was a feast that evening"])
    opening(t)
    t.tell(day(t) + ", {h} came to {gate}. {h.He} had to {cross}, because {beyond} " + goal + ".", "But {guard} [sat|stood] [in front of it|in the way].")
    t.say(n["the"], t.pick(["Nobody may {cross} without an answer to my riddle.", "Answer my riddles, and you may {cross}. If you fail, you must go home.", "Stop! First a riddle."]))
    t.say("h", t.pick(["Ask me!", "I will try.", "I like riddles."]))
    two = t.random.sample(RIDDLES, t.pick([1, 2, 2, 3]))
    for i, (q, answer) in enumerate(two):
        t.say(n["the"], q)
        hard = t.chance(0.5)
        if hard:
            t.tell(t.pick(["{h} [thought and thought|scratched {h.his} head|closed {h.his} eyes and thought].", "{h} walked up and down three times.", "That was a hard one."]))
            if t.chance(0.4):
                wrong = t.pick([x[1] for x in RIDDLES if x[1] != answer])
                t.tell(f"\"Is it {wrong}?\" [thought {{h}}|{{h}} said to {{h.himself}}]. No, that was not right.")
        t.say("h", t.pick([f"It is {answer}!", f"I know it. It is {answer}.", f"The answer is {answer}."]))
        if i + 1 < len(two):
            t.say(n["the"], t.pick(["Right. Here is another one.", "Hm, that was easy. Now listen.", "Correct. But I have one more."]))
    t.para()
    t.tell("{the} [was silent for a while|looked at {h} with big eyes|scratched one ear].")
    t.say(n["the"], t.pick(["You are right. Go on, little one.", "Nobody has ever guessed so well. You may {cross}.", "You are clever. The way is free."]))
    if t.chance(0.6):
        t.say("h", t.pick(["Why do you sit here all alone?", "Do you like to ask riddles?"]))
        t.say(n["the"], t.pick(["Nobody talks to me if I do not stop them.", "It is the only way to have some company."]))
        t.say("h", t.pick(["Then I will come back tomorrow with a riddle for you.", "Come with me! There is room for one more."]))
        t.tell(t.pick(["And {h} kept the promise. Every week {h.he} came back with a new riddle, and {the} never stopped anyone again.", "{the} smiled for the first time in a hundred years."]))
    t.tell("So {h} could {cross}, and {beyond} " + goal.replace("was waiting", "was still waiting").replace("there was", "there was indeed") + ".")
    feel(t, "h", t.pick(["happy", "proud"]))
    goodbye(t)
    return t.pick(["{h} and the Riddle", "The Riddle at {X}".replace("{X}", gate[0].title().replace("The", "the").replace("Of", "of")), "{h} and " + n["the"].title().replace("The", "the")])


def plot_monster(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    beast = n["beast"] = t.pick(["dragon", "giant", "wolf", "sea monster", "bear", "big snake", "troll", "ghost", "yeti"])
    p = n["p"] = Place(t.pick([x for x in PLACES if x[0] in ("the forest", "the hill", "the cave", "the lake", "the river", "the mountain", "the swamp", "the castle", "the island", "the old mill")]))
    n["tb"] = "the " + beast
    w = n["w"] = t.villager()
    opening(t)
    sign = t.pick(["Every night a terrible roar came from {p}", "There was smoke and noise near {p}", "Huge footprints led to {p}", "People heard a loud moan from {p}"])
    t.tell(sign + ", and [everyone|the whole village] was afraid.")
    t.say("w", t.pick(["It is a {beast}! Lock your doors!", "There is a {beast} up there. It will eat us all!", "Do not go there! The {beast} is wild."]))
    t.say("h", t.pick(["Has anybody spoken to it?", "How do you know that it is bad?", "Maybe it only needs help."]))
    t.tell("[Nobody had an answer|They all shook their heads].", "So {h} [took a lantern|put some bread in a bag|took a deep breath] and went to {p}[| alone| all alone].")
    t.para()
    t.tell("There it was. The {beast} was [as big as a house|huge|bigger than the biggest tree|taller than the church]" + ("." if beast != "ghost" else ", and white as milk."))
    feel(t, "h", "scared")
    t.say("h", t.pick(["Hello! Why do you make so much noise?", "Good evening. What is the matter?", "Please do not eat me. I only want to talk."]), t.pick(["", "with a shaking voice"]))
    why, fix, later = t.pick([
        ("I have a terrible toothache.", "looked into the big mouth and pulled out a thorn that was stuck between two teeth", "kept the village warm in winter"),
        ("I am so lonely. Everyone runs away.", "sat down and told funny stories until the {beast} laughed", "played with the children every Sunday"),
        ("I am lost, and I want to go home.", "climbed up a tall tree, looked for the right way and showed it", "came back every spring with a gift for {h}"),
        ("I can not sleep. My bed is so hard.", "gathered a mountain of leaves and made a soft bed", "slept well at last, and the nights were quiet"),
        ("I have lost my baby, and I can not find it.", "looked everywhere and found the little one asleep behind a rock", "carried the children of the village on its back"),
        ("I am so hungry, and I do not eat people. I only like turnips.", "ran home and came back with a cart full of turnips", "helped the farmers in the fields"),
        ("I am afraid of the dark.", "left the lantern there and promised to bring another one", "was never afraid again and watched over the village"),
        ("My foot is caught between the rocks, and it hurts.", "pushed a strong branch under the rock and moved it", "moved heavy stones whenever someone built a house")])
    t.say(n["tb"], why)
    t.tell("{h} " + fix + ".")
    t.say(n["tb"], t.pick(["Thank you, little friend.", "Nobody was ever so kind to me.", "You did not run away. Why?"]))
    if t.out[-1].endswith('Why?"') or "Why?" in t.out[-1]:
        t.say("h", "Because you looked more sad than bad.")
    t.para()
    t.tell("When {h} came back to the village, [nobody could believe it|everyone wanted to hear the story].", t.pick(["{w} turned red.", "{w} shook {w.his} head."]))
    t.say("w", t.pick(["We were afraid of something that we did not know.", "We should have asked, as you did."]))
    t.tell("From that day on, the {beast} " + later + ".")
    moral(t, t.pick(["brave", "help"]))
    goodbye(t)
    return t.pick(["{h} and the {X}", "The Sad {X}", "The {X} of " + p.name.title().replace("The", "the")]).replace("{X}", beast.title())


def plot_robot(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want) if want and "noun" not in want else t.child()
    m = n["m"] = t.adult(h)
    r = n["r"] = Being(t.pick(["Bolt", "Tik", "Rusty", "Beep", "Zip", "Clank", "Gear", "Widget", "Spark", "Tin"]), "it", "robot")
    opening(t)
    t.tell(t.pick(["{h} found an old robot in the [shed|cellar|attic].", "{m} built a small robot for {h}.", "For {h.his} birthday, {h} got a little robot from {m}."]), "{h} called it {r}.",
           "{r} could [count to a thousand|lift heavy boxes|sweep the floor|carry the cups] and [beep|blink|roll] [very fast|all day], but it did not [understand|know] " + "[feelings|jokes|why people laugh].")
    feeling, cause, lesson = t.pick([
        ("sad", "{h}'s goldfish died, and {h} cried", "When you are sad, someone can sit next to you and say nothing at all."),
        ("funny", "{m} slipped on a banana and sat down in the cake, and everybody laughed", "A thing is funny when it is a surprise and nobody is hurt."),
        ("brave", "{h} had to go to the dentist and was afraid", "Being brave is to be afraid and to go anyway."),
        ("sorry", "{r} broke {h}'s best cup", "To be sorry is to want to make it good again."),
        ("friendship", "the other children said that {r} was only a machine", "A friend is somebody who stays."),
        ("love", "{h} was ill and had to stay in bed for a week", "Love is when you think of someone more than of yourself.")])
    t.para()
    t.tell(day(t) + ", " + cause + ".")
    t.say("r", t.pick(["I do not understand. What is this?", "Please explain. What is happening?", "Why is there water in your eyes?" if feeling == "sad" else "What does it mean?"]))
    t.say("h", lesson)
    t.tell("{r} [blinked|beeped|was quiet] for a long time.", {
        "sad": "Then it rolled next to {h} and stayed there. It did not count and did not beep.", "funny": "Then it put a pot on its own head and walked into the door. Everybody laughed again, and {r} made a sound that was almost a laugh.",
        "brave": "Then it held {h}'s hand with its cold fingers, all the way to the dentist and back.", "sorry": "Then it worked all night with glue and a small brush. In the morning the cup was whole.",
        "friendship": "{h} stood in front of {r} and said, \"{r} is my friend.\" And {r} stayed at {h.his} side all day.", "love": "Then it rolled to the kitchen, and it came back with tea. It came back every hour, day and night."}[feeling])
    t.say("r", t.pick(["I think I understand now.", "Is this how it feels?", "Now I have learned something that nobody built into me."]))
    t.say("h", t.pick(["Yes, {r}. That is it.", "You learned it all by yourself.", "You are the best robot in the world."]))
    t.tell(t.pick(["That night a small light [glowed|shone] in {r}'s chest, warmer than before.", "From then on, {r} was more than a machine.", "{m} looked at them and said, \"Who is teaching whom?\""]))
    feel(t, "h", "happy")
    goodbye(t)
    return t.pick(["{h} and the Robot", "The Robot Who Learned", "{r} the Robot", "{h} and {r}"])


def plot_treasure(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    opening(t)
    t.tell(day(t) + ", {h} found an old map " + t.pick(["in a bottle", "behind a picture", "between the pages of a book", "under a loose board", "in the pocket of an old coat"]) + ".")
    t.say("h", t.pick(["{f}, look! A treasure map!", "This cross must be a treasure!", "Will you come with me, {f}?"]))
    t.say("f", t.pick(["When do we start?", "I will bring a spade.", "Are you sure that it is real?"]))
    if "real" in t.out[-1]:
        t.say("h", t.pick(["There is only one way to find out.", "No. But I want to know."]))
    rows = t.random.sample(PLACES, 3)
    first, second, last = (Place(x) for x in rows)
    steps = t.pick(["ten", "twenty", "thirty", "a hundred"])
    t.tell(f"The map said: \"Start {first.at}. Go on to {second.name}. Then take {steps} steps and dig.\"")
    t.tell(f"So they went to {first.name} first. {t.pick(['They saw ' + first.sights[0] + ' and ' + first.sights[1] + '.', 'An arrow was scratched into the wall there.' if t.chance(.5) else 'It was just as the map had shown.'])}")
    t.para()
    if t.chance(0.6):
        trouble = t.pick([("it began to rain, and the map got wet", "{f} had learned it by heart"), ("the wind took the map away", "{h} climbed after it and got it back"), ("they could not agree which way to go", "{f} said, \"Let us try yours first, then mine.\""),
                          ("{f} hurt {f.his} foot", "{h} made a stick for {f.him} to lean on"), ("they were hungry and tired", "{h} shared {h.his} last apple")])
        t.tell("[On the way|Then] " + trouble[0] + ". [Luckily|But] " + trouble[1] + ("." if not trouble[1].endswith('"') else ""))
    t.tell(f"At {second.name}" + (" " if True else "") + f"they counted {steps} steps, [very slowly|out loud|one after the other].", "Then they dug[ and dug| until their arms hurt| with all their strength].")
    t.say("f", t.pick(["There is something hard!", "I hear a clonk!", "Here! A box!"]))
    t.tell("It was [a box|a chest|a tin box] with [an old lock|a rusty lid|a ribbon around it]. They opened it.")
    find, so = t.pick([
        ("a hundred old coins", "They bought new benches for the school and two big ice creams"), ("seeds and a letter: \"The treasure will grow.\"", "They planted the seeds, and next year there was a garden where nothing had grown before"),
        ("toys from long ago", "They cleaned the toys and gave them to the little ones in the village"), ("a picture of two friends and the words: \"We were here first.\"", "They put in a picture of themselves and closed the box again for the next ones"),
        ("another map", "They looked at each other and laughed. The best part was that they could go again tomorrow"), ("a crown of gold", "They took it to the museum, and their names were written under it"),
        ("a small flute", "{h} played it, and {f} danced all the way home"), ("a book of stories", "They read one story every evening, until the last page")])
    t.tell("Inside [was|lay] ".replace("[was|lay]", "there was" if find.startswith("a") and "hundred" not in find else "there were") + find + ("." if not find.endswith('"') else ""))
    t.say("h", t.pick(["What shall we do with it?", "This is better than gold!" if "gold" not in find and "coins" not in find else "We are rich!", "I have never seen anything like it."]))
    t.tell(so + ".")
    t.say("f", t.pick(["The best thing was looking for it with you.", "I will never forget this day.", "Next time you must let me hold the map."]))
    feel(t, "h", "happy")
    goodbye(t)
    return t.pick(["The Treasure Map", "{h} and the Treasure", "{h} and {f} Find a Treasure"])


MOTHERS = [("kitten", "cat", "meows"), ("duckling", "duck", "quacks"), ("lamb", "sheep", "says baa"), ("puppy", "dog", "barks"), ("chick", "hen", "clucks"), ("calf", "cow", "moos"), ("piglet", "pig", "oinks"), ("foal", "horse", "neighs"), ("owlet", "owl", "hoots"), ("kid", "goat", "bleats")]


def plot_baby(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    young, mother, sound = t.pick(MOTHERS)
    n["young"], n["mother"], n["sound"] = young, mother, sound
    wrong = t.random.sample([x for x in MOTHERS if x[1] != mother], t.pick([1, 2, 2, 3]))
    p = n["p"] = t.place()
    opening(t)
    t.tell(day(t) + f", {{h}} found a [tiny|small|wet|shaking] {{young}} {t.pick(p.spots)} {p.at}. It was all alone.")
    t.say("h", t.pick(["Where is your mother?", "Poor little one! Are you lost?", "Do not cry. I will take you home."]))
    t.tell("The {young} [did not know|only cried|looked up with big eyes].", "{h} [picked it up|put it in {h.his} basket|let it walk close behind] and went to look for its mother.")
    t.para()
    for y, m_, s in wrong:
        t.tell(t.pick(["[First|Then|Next] they met a " + m_ + ".", "[By the road|In a yard|Near a fence] stood a " + m_ + "."]))
        t.say("h", t.pick(["Is this your baby?", "Excuse me, have you lost a child?"]))
        t.say("the " + m_, t.pick([f"No, my babies are called {y}{'s' if y != 'calf' else ''}.".replace("calf.", "calves.") if y != "calf" else "No, my babies are calves.", f"No. Listen: my child {s}. Does this one?".replace("?", "?"), "No, but try on the other side of the hill."]))
        if "Does this one" in t.out[-1]:
            t.say("h", "No, it does not.")
    t.tell(t.pick(["It was getting late, and {h} was tired, but {h.he} did not give up.", "The {young} was so tired that {h} carried it.", "\"We will find her,\" said {h}, and they went on."]))
    t.tell("[At last|Then] they heard a sound. [Somebody|Something] was calling.")
    t.say("h", f"Listen! Somebody {sound}!")
    t.tell("The {young} [jumped up|lifted its head] and ran. There stood a {mother}, and the {mother} [could not stop kissing|licked and hugged] the {young}.")
    t.say("the " + mother, t.pick(["My little one! I was so afraid.", "Thank you for bringing my child home.", "I looked for it everywhere!"]))
    t.tell(t.pick(["The {mother} gave {h} a soft place to rest and walked {h.him} home.", "{h} waved goodbye and walked home under the stars.", "\"Come and see us soon!\" called the {young}."]))
    feel(t, "h", t.pick(["happy", "proud"]))
    t.tell(t.pick(["And whenever {h} passed by, the {young} came running.", "When {h} came home, {h.he} hugged {h.his} own mother very tightly.", "Every spring the {mother} brought {h} a flower."]))
    moral(t, "help") if t.chance(0.5) else None
    goodbye(t)
    return t.pick(["The Lost {X}", "{h} and the Lost {X}", "Where Is Your Mother?"]).replace("{X}", young.title())


QUARRELS = [
    ("which game to play", "{h} wanted to play hide and seek, and {f} wanted to play catch", "They played hide and seek until noon and catch until evening"),
    ("who was stronger", "{h} said that {h.he} could lift the heavy log, and {f} said that only {f.he} could", "They tried to lift the log alone, and it did not move. Then they lifted it together, and it was easy"),
    ("the last piece of cake", "{h} had seen it first, but {f} had touched it first", "One cut the cake into two pieces, and the other one was allowed to choose first"),
    ("the colour of the boat", "{h} wanted a red boat, and {f} wanted a blue one", "They painted it red on one side and blue on the other, and no boat was ever as pretty"),
    ("who should be captain", "both of them wanted to stand at the wheel of the little ship", "{h} was captain on the way out, and {f} was captain on the way back"),
    ("a swing", "both of them sat down on the only swing at the same time", "One of them sat and the other one pushed, and then they changed places"),
    ("a story", "{h} said that the story had a happy end, and {f} said that it was sad", "They read the story again, side by side, and found that it was a little of both")]


def plot_quarrel(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    w = n["w"] = t.villager() if t.chance(0.5) else t.adult(h)
    p = n["p"] = t.place()
    about, how, end = t.pick(QUARRELS)
    n["about"] = about
    opening(t)
    t.tell(t.pick(["{f} was {h.his} best friend. They did everything together.", "{h} and {f} had been friends for as long as they could remember.", "Every day {h} met {h.his} friend {f}."]))
    t.tell(day(t) + f", they were {p.at} and began to quarrel about {{about}}: " + how[0].lower() * 0 + t.fill(how) + ".")
    t.say("h", t.pick(["You never listen to me!", "I said it first!", "It is always your turn!"]))
    t.say("f", t.pick(["You are not my friend any more!", "You always want to be right!", "Then I will go home!"]))
    feel(t, "h", "angry")
    t.tell("{f} went [one way|to the left|up the road], and {h} went [the other way|to the right|down the road]." if False else "So {f} went one way, and {h} went the other way.")
    t.para()
    t.tell(t.pick(["At home it was very quiet.", "{h} tried to play alone, but {h.he} always stopped to show {f} something, and {f} was not there.", "{h} ate alone, walked alone and talked to the wall."]))
    feel(t, "h", t.pick(["lonely", "sad"]))
    t.tell("{w} [saw {h}'s face|came and sat down next to {h}].")
    t.say("w", t.pick(["Where is {f} today?", "What has happened between you two?"]))
    t.say("h", t.pick(["We had a fight about {about}.", "{f} is angry with me. We quarrelled about {about}."]))
    t.say("w", t.pick(["And what is more important, {about} or your friend?", "Will you still think of that in a year? And will you still want a friend?", "Somebody has to say the first word. Why not you?"]))
    t.tell("{h} [thought about it|said nothing for a while|looked at the floor]. Then {h.he} [jumped up|ran out of the door|put on {h.his} shoes].")
    t.tell("Halfway down the road {h.he} met {f}, who was [coming to see {h.him}|on the way to {h.him}|running too].")
    t.para()
    t.say("h", t.pick(["I am sorry!", "I missed you.", "I do not want to fight."]))
    t.say("f", t.pick(["I am sorry too.", "I wanted to say that first!", "It was silly of us."]))
    t.tell("They [laughed|hugged|shook hands] and had an idea. " + end + ".")
    feel(t, "h", "happy")
    moral(t, "share")
    goodbye(t)
    return t.pick(["The Quarrel", "{h} and {f} Make Up", "{h} and {f}"])


def plot_show(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    w = n["w"] = t.villager()
    act, verb, wrong, saved = t.pick([
        ("song", "sing", "forgot the words", "began to hum the tune, and the whole hall hummed with {h.him}"), ("dance", "dance", "slipped and fell", "slid across the floor too, as if it were part of the dance"),
        ("magic trick", "do a magic trick", "dropped all the cards", "called out, \"And now they fly back up!\" and everyone laughed and clapped"), ("play", "play the king" if h.he == "he" else "play the queen", "lost the crown, which rolled off the stage", "ran after the crown and cried, \"Your crown is as lively as you are!\""),
        ("poem", "say a poem", "could not remember the second line", "held up a picture of the moon, and {h} knew the line again"), ("juggling act", "juggle", "let the third ball fall", "threw it back from the first row, just in time"),
        ("piece on the drum", "play the drum", "broke a stick", "threw {h.him} a wooden spoon")])
    n["act"], n["verb"] = act, verb
    opening(t)
    t.tell(t.pick(["There was going to be a big show in the village.", "{w} was planning a feast with a show.", "The school was getting ready for a show."]), "{h} was going to {verb}.")
    t.tell("{h.He} practised [every day|in front of the mirror|in the garden] for [a week|two weeks|many days].", t.pick(["{f} watched and clapped every time.", "{f} helped {h.him} and knew it by heart too."]))
    t.say("h", t.pick(["What if I make a mistake?", "There will be so many people!", "I hope that I can do it."]))
    t.say("f", t.pick(["Then I will be there.", "Look at me, and you will be fine.", "Everybody makes mistakes."]))
    t.para()
    t.tell("[The evening came|At last it was time]. [The hall|The square] was full. {h} stepped [forward|onto the stage], and {h.his} heart [beat like a drum|jumped].",
           "[At first|For a while] [everything went well|it was perfect]. Then {h} " + wrong + ".")
    t.tell("[It was very quiet|Nobody made a sound|Somebody giggled]. {h.His} face was [hot|red].")
    t.tell("Then {f} " + saved + ".")
    t.tell("{h} [laughed|smiled|took a deep breath] and [went on|started again]. This time [it was even better than before|nothing went wrong].", "[At the end|When it was over], everybody [stood up and clapped|shouted and clapped|wanted to hear it again].")
    t.say("w", t.pick(["That was the best part of the show!", "I have never laughed so much.", "You did not give up. Bravo!"]))
    t.say("h", t.pick(["Thank you, {f}. Without you I would have run away.", "I made a mistake, and the world did not end."]))
    t.say("f", t.pick(["What are friends for?", "Next time we will do it together."]))
    feel(t, "h", "proud")
    moral(t, "brave") if t.chance(0.5) else None
    goodbye(t)
    return t.pick(["The Big Show", "{h} on the Stage", "{h}'s {X}"]).replace("{X}", act.title())


def plot_storm(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    f = n["f"] = t.friend_of(h)
    w = n["w"] = t.villager()
    storm = n["storm"] = t.pick(["snow storm", "thunder storm", "great wind", "flood", "long frost"])
    opening(t)
    t.tell(f"[That winter|One night|One evening], a {storm} came over the land." if storm != "flood" else "[One spring|After ten days of rain], the river rose over its banks.",
           {"snow storm": "The snow was so high that nobody could open the door.", "thunder storm": "The lightning hit the old tree, and the roof of {f}'s home was broken.", "great wind": "It blew the roof from {f}'s home as if it were a hat.",
            "flood": "The water came into {f}'s home, first one inch and then two.", "long frost": "All the wood was burned at {f}'s home, and the stove was cold."}[storm])
    t.say("m", t.pick(["Stay inside, {h}. It is warm here.", "We have enough soup for three days.", "What a night!"]))
    t.say("h", t.pick(["But what about {f}?", "{f} is all alone out there.", "We must see if {f} is safe."]))
    t.tell({"snow storm": "{h} and {m} dug a tunnel through the snow, with a spoon and a pan.", "thunder storm": "{h} and {m} put on their coats and ran through the rain.", "great wind": "{h} and {m} held hands, so that the wind could not carry them away.",
            "flood": "{h} and {m} took the big washtub and rowed with two brooms.", "long frost": "{h} and {m} loaded wood on a sled and pulled it over the ice."}[storm])
    t.tell("{f} was sitting [in a corner|on the table|under a blanket] and shaking.")
    t.say("f", t.pick(["You came!", "I thought that nobody would come.", "I was so afraid."]))
    t.say("h", t.pick(["Of course we came. Come with us.", "You are going to stay with us."]))
    t.para()
    t.tell("On the way they met {w}, who [was cold too|had lost {w.his} way|had nowhere to go].", "\"Come along,\" said {m}. \"There is room for one more.\"")
    more = t.random.sample(["a sack of potatoes", "a jar of honey", "a fiddle", "a pot of beans", "a warm quilt", "a bag of nuts", "a loaf of bread", "a candle", "a pack of cards", "some cheese"], 2)
    t.tell(f"{{f}} had brought {more[0]}, and {{w}} had {more[1]}.", "Soon they all sat around the stove. They [ate|cooked] and [sang|told stories] while the storm [shook the windows|howled outside|was forgotten]." if storm not in ("flood", "long frost") else "Soon they all sat around the stove. They [ate|cooked] and [sang|told stories] all night long.")
    t.say("w", t.pick(["This is the best night of the year.", "I have not laughed like this since I was small."]))
    t.tell({"snow storm": "In the morning the sun came out, and the world was white and still.", "thunder storm": "In the morning the sky was blue, and there was a rainbow.", "great wind": "In the morning the wind was gone.", "flood": "After two days the water went back to the river.",
            "long frost": "After some days the ice began to drip, and the birds came back."}[storm], "Together they [repaired|cleaned|set right] {f}'s home, and with so many hands it was done by [noon|evening].")
    t.say("f", t.pick(["Thank you. I will never be afraid of a storm again.", "Next time you must all come to me!"]))
    feel(t, "h", "happy")
    moral(t, "help")
    goodbye(t)
    return t.pick(["The {X}", "{h} and the {X}", "The Night of the {X}"]).replace("{X}", storm.title())


ROAD = [plot_quest, plot_quest, plot_riddle, plot_monster, plot_robot, plot_treasure, plot_baby, plot_quarrel, plot_show, plot_storm]
