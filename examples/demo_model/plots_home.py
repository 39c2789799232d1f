# SPDX-License-Identifier: Apache-2.0
"""Plots at home and in the village. Each picks who and what, tells what happens in order, and returns a title.

The names in use are kept in t.names: h the hero, f a friend, m a grown-up of the family, o the thing, p the place.
"""
from teller import *

def plot_lost(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    o = n["o"] = t.toy(want)
    n["m"] = t.adult(h)
    opening(t)
    t.tell(t.pick(["{h} had {o.a}. {m} had given it to {h.him}.", "More than anything, {h} loved {h.his} {o}.",
                   "{h} owned {o.a} and took it everywhere.", "{m} gave {h} {o.a}[| for {h.his} birthday|, and it became {h.his} best treasure]."]))
    t.tell(f"{{h.He}} liked to {o.use}.")
    t.para()
    start = t.place()
    t.tell(day(t) + ", {h} [took {o.the} and went|went with {o.the}|carried {o.the}] to " + start.name + ".")
    n["p"] = start
    t.tell(t.pick(["{h.He} [played|ran about|had fun] there for a long time.", "{h.He} [looked at|stopped to see] " + t.pick(start.sights) + " and forgot about everything else.",
                   "{h.He} [chased a butterfly|climbed and jumped|sang a song] until {h.he} was tired."]))
    t.tell("When it was time to go home, {h.he} [reached for|looked for] {o.the}. It was [gone|not there|nowhere to be seen]!")
    feel(t, "h", t.pick(["sad", "worried"]))
    t.para()
    if t.chance(0.5):
        t.tell("{f}[, {h.his} best friend,|, a good friend,|] [came by|was passing by|heard {h.him} crying].")
    else:
        t.tell("{h} [ran|went] to [see|find] {f}, {h.his} [best|good|old] friend.")
    t.say("f", t.pick(["What is wrong, {h}?", "Why are you so sad?", "What happened, {h}?"]))
    t.say("h", t.pick(["I lost my {o}.", "My {o} is gone!", "I can not find my {o}."]))
    t.say("f", t.pick(["Do not worry. We will look for it together.", "Let us look for it together!", "I will help you find it.", "Where did you have it last?"]))
    if t.out[-1].rstrip('".').endswith("last?") or "have it last" in t.out[-1]:
        t.say("h", "I had it when I was " + start.at + ".")
    spots = t.random.sample(start.spots, 3)
    t.tell(f"[They|The two friends] went back to {{p}} and looked {spots[0]}.",
           t.pick(["There was only [a dry leaf|an old shoe|a sleepy beetle|some mud].", "It was not there.", "They found [nothing|only dust]."]))
    if t.chance(0.7):
        t.tell(f"[Then|Next] they looked {spots[1]}.", t.pick(["It was not there [either|]. ", "No {o.noun} there!", "They found [a shiny stone|a penny|a blue egg shell], but no {o.noun}."]))
    t.para()
    if t.chance(0.5):
        t.tell(f"[At last|Finally], {{f}} looked {spots[2]}.", "[There was something there|Something lay there|It was dark, but something was there].")
        t.say("f", t.pick(["Here it is!", "I found it!", "Look, {h}, your {o.noun}!"]))
        t.tell("{h} [held {o.the} tight|hugged {f}|jumped for joy].")
        t.say("h", t.pick(["Thank you, {f}!", "Thank you! You are a true friend.", "Oh, thank you!"]))
    else:
        c = n["c"] = t.animal()
        t.tell(f"[At last|Then] they saw a {{c.species}} {spots[2]}. The {{c.species}} was [holding|sitting on|playing with] {{o.the}}!")
        t.say("h", t.pick(["That is my {o.noun}.", "Please, may I have my {o.noun} back?"]), t.pick(["", "politely", "softly"]))
        t.say("the {c.species}".replace("{c.species}", c.species), t.pick(["Oh, I am sorry. I did not know it was yours.", "I found it on the ground. Here, take it.", "I was keeping it safe for you."]))
        t.tell("The {c.species} gave {o.the} back to {h}.")
        t.say("h", t.pick(["Thank you! Come and play with us.", "You are very kind.", "Thank you for keeping it safe."]))
        t.tell("[All three of them|{h}, {f} and the {c.species}] played together until [the sun went down|it was dark|dinner time].")
    feel(t, "h", "happy")
    t.tell(t.pick(["After that, {h} always [kept {o.the} close|put {o.the} in {h.his} bag|looked twice before going home].", ""]))
    moral(t, "care")
    goodbye(t)
    return "{h} and the [Lost |Missing |]{o.Noun}"


def plot_earn(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    o = n["o"] = t.toy(want)
    v = n["v"] = t.villager()
    w = n["w"] = t.villager()
    opening(t)
    need, verb = t.pick([("wood", "carry the wood"), ("water", "bring the water"), ("flour", "carry the flour"), ("apples", "pick the apples"),
                         ("eggs", "find the eggs"), ("wool", "wash the wool"), ("letters", "carry the letters"), ("flowers", "water the flowers"),
                         ("fish", "sort the fish"), ("books", "put away the books"), ("leaves", "sweep up the leaves"), ("hay", "pile up the hay")])
    n["need"], n["job"] = need, verb
    t.tell(day(t) + ", {h} saw {o.a} " + t.pick(["in a shop window", "at the market", "on the shelf of a little shop", "in the hands of {v}"]) + ".")
    t.tell(f"{{h.He}} [thought|dreamed] of how {{h.he}} would {o.use}.")
    t.say("h", t.pick(["How much is it?", "May I have that {o.noun}, please?", "I would like that {o.noun} so much!"]))
    price = t.pick(["three", "four", "five", "six", "seven", "ten"])
    n["price"] = price
    t.say("v", t.pick(["It costs {price} coins.", "You may have it for {price} coins.", "Bring me {price} coins and it is yours."]))
    t.tell("{h} [had no coins|looked in {h.his} pocket. It was empty|had only a button in {h.his} pocket].")
    feel(t, "h", "sad")
    t.para()
    t.tell("[But {h} did not give up|Then {h.he} had an idea|But {h} was not one to give up].", "{h.He} went to {w}.")
    t.say("h", t.pick(["Do you need any help?", "Can I work for you?", "Is there something I can do for you?"]))
    t.say("w", t.pick(["Yes! Please {job}, and I will give you {price} coins.", "If you {job}, you shall have {price} coins.",
                       "I am too tired to {job}. Do it for me and I will pay you {price} coins."]))
    t.tell("{h} [worked|worked hard|worked and worked] all [day|morning|afternoon].", t.pick(["The {need} was heavy." if need in ("wood", "water", "flour", "hay", "wool") else "There was so much to do.",
           "{h.His} [arms|feet|legs] began to hurt, but {h.he} did not stop.", "{h.He} sang a little song to make the time go faster."]))
    slip = t.chance(0.45)
    if slip:
        t.tell(t.pick(["Then {h.he} slipped and had to start again.", "Once {h.he} wanted to stop, but {h.he} thought of {o.the}.", "A friend called, \"Come and play!\" But {h} said, \"First I must finish.\""]))
    t.tell("When the work was done, {w} [smiled|nodded] and [gave|handed] {h} {price} [shiny |bright |]coins.")
    t.say("w", t.pick(["You worked well.", "Thank you, {h}. You are a good worker.", "Well done, {h}!"]))
    t.para()
    twist = t.random.random()
    if twist < 0.6:
        t.tell("{h} ran [back |all the way back |]to {v} and put the {price} coins [on the table|in {v.his} hand].")
        t.say("v", t.pick(["Here is your {o.noun}.", "It is yours now. Take good care of it."]))
        t.tell("{h} held {o.the} in both " + ("paws" if h.species else "hands") + ".")
        feel(t, "h", "proud")
        t.tell(t.pick(["It was worth all the work.", "It felt even better because {h.he} had earned it.", "That evening {h.he} [could not wait to|went out to] " + o.use + "."]))
        moral(t, "patience")
    else:
        k = n["k"] = t.friend_of(h)
        t.tell("On the way to {v}, {h} met {k}. {k} was crying.")
        t.say("k", t.pick(["I lost my money, and I can not buy bread for my family.", "My mother is ill and I have no money for soup.", "I am so hungry, and I have nothing to eat."]))
        t.tell("{h} looked at the coins. {h.He} thought of {o.the}. Then {h.he} gave the coins to {k}.")
        t.say("k", t.pick(["Thank you! I will never forget this.", "You are the kindest {h.kind} I know.".replace("{h.kind}", h.species or h.boy)]))
        t.tell("{v} had seen it all from the [door|window|road].")
        t.say("v", "A {h.kind} with such a good heart should have this.".replace("{h.kind}", h.species or h.boy))
        t.tell("And {v.he} gave {o.the} to {h} as a gift.")
        feel(t, "h", "happy")
        moral(t, "help")
    goodbye(t)
    return "{h} and the {o.Noun}"


def plot_fear(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    fear, key = t.pick(FEARS)
    n["fear"] = fear
    opening(t)
    t.tell("But {h} had a secret. {h.He} was afraid of {fear}.")
    t.tell({"dark": "[At night {h.he} hid under the blanket|{h.He} always slept with a light on].", "water": "{h.He} never went [near the lake|into the river|swimming with the others].",
            "storm": "[When clouds came, {h.he} hid under the table|At every boom {h.he} covered {h.his} ears].", "high": "{h.He} never climbed [trees|ladders|hills] like the others.",
            "dog": "When a dog barked, {h.he} [ran inside|hid behind the door].", "speak": "When [the teacher|someone] asked {h.him} a question, {h.he} [looked at the floor|turned red|said nothing].",
            "spider": "[If {h.he} saw one, {h.he} ran out of the room|Even a tiny one made {h.him} scream]."}[key])
    if t.chance(0.5):
        t.tell("[The others|Some of the others] laughed, but {f} did not. {f} was {h.his} best friend.")
    else:
        t.tell("Only {f}, {h.his} best friend, knew about it.")
    t.para()
    event = {"dark": "{f} fell into a [deep hole|dark cellar|small dark cave] and could not get out", "water": "{f} slipped on a wet stone and fell into the [river|lake]",
             "storm": "a great storm came, and {f} was still out in the field", "high": "{f} climbed a [tall tree|high wall] and could not get down",
             "dog": "a big dog [stood in front of|ran after] {f} and would not go away", "speak": "{f} was blamed for [breaking a window|taking the cookies|losing the key], and only {h} knew that it was not true",
             "spider": "{f} was stuck in the old shed, and a big spider sat on the door"}[key]
    t.tell(day(t) + ", " + event + ".")
    if key == "speak":
        t.say("f", t.pick(["I did not do it!", "Please, believe me!"]))
    else:
        t.say("f", t.pick(["Help! Help!", "{h}, please help me!", "I need you, {h}!"]))
    t.tell("{h}'s [heart beat fast|knees shook|heart jumped].", t.pick(["{h.He} wanted to run away.", "At first {h.he} could not move.", "{h.He} looked around, but nobody else was there."]))
    t.say("h", t.pick(["I am afraid, but {f} needs me.", "If I do nothing, who will help {f}?", "I must try."]), t.pick(["to {h.himself}", "in a small voice", ""]))
    act = {"dark": ["{h.He} took a deep breath and climbed down into the dark. {h.He} felt the walls with {h.his} hands|{h.He} counted {h.his} steps in the dark, one, two, three, until {h.he} found {f}"],
           "water": ["{h.He} stepped into the cold water, first one foot and then the other. {h.He} held out a long branch|{h.He} held on to a root and reached out for {f}"],
           "storm": ["{h.He} ran into the rain. Thunder roared, but {h.he} kept running|{h.He} put on a coat and walked into the wind, calling for {f}"],
           "high": ["{h.He} climbed up, one branch at a time, and did not look down|{h.He} found a ladder and climbed up step by step"],
           "dog": ["{h.He} walked up to the dog very slowly. {h.He} held out a piece of bread|{h.He} spoke to the dog in a soft voice and threw a stick far away"],
           "speak": ["{h.He} stood up. Everyone looked at {h.him}. In a loud voice {h.he} told them what had really happened|{h.He} walked to the front and said every word of the truth"],
           "spider": ["{h.He} took a cup, put it over the spider and carried it outside|{h.He} looked at the spider. It was only small. Step by step {h.he} went to the door and opened it"]}[key][0]
    t.tell("[" + act + "].")
    if t.chance(0.4) and key not in ("speak",):
        t.tell(t.pick(["Once {h.he} almost turned back, but then {h.he} heard {f} again.", "It was hard, but {h.he} did not stop."]))
    t.tell({"dark": "{h} took {f} by the hand, and together they found the way out.", "water": "{f} [took hold|held on tight], and {h} pulled with all {h.his} strength until {f} was safe on the grass.",
            "storm": "At last {h.he} found {f} under a [bush|cart|tree], and they ran home hand in hand.", "high": "{h} showed {f} where to put {f.his} feet, and slowly they came down together.",
            "dog": "The dog [wagged its tail|ran off after it|lay down on the grass], and {f} was safe.", "speak": "Everyone believed {h}, and they all said sorry to {f}.",
            "spider": "The door opened and {f} came out into the sun."}[key])
    t.para()
    t.say("f", t.pick(["You saved me!", "Thank you, {h}. You were so brave!", "I knew that you would come."]))
    t.say("h", t.pick(["I was scared the whole time.", "I was afraid, but you are my friend.", "I did not feel brave at all."]), t.pick(["", "with a smile"]))
    t.say("f", t.pick(["That is what being brave is.", "But you did it anyway."]))
    feel(t, "h", "proud")
    t.tell(t.pick(["After that day, {h} was not so afraid of {fear} any more.", "{fear.X}".replace("{fear.X}", fear[0].upper() + fear[1:]) + " did not seem so bad now."
                   if key in ("dark", "speak") else "From then on, {h} was a little less afraid of {fear}."]))
    moral(t, "brave")
    goodbye(t)
    return t.pick(["{h} Is Brave", "Brave {h}", "{h} and {f}"])


def plot_share(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    o = n["o"] = t.toy(want)
    n["m"] = t.adult(h)
    p = n["p"] = t.place()
    opening(t)
    t.tell(day(t) + ", {h} got {o.a} from {m}.", f"{{h.He}} [wanted to|could not wait to] {o.use}.")
    t.tell("{h} took {o.the} to {p}. {f} was [already |]there.")
    t.say("f", t.pick(["What a lovely {o.noun}! May I try it?", "Can I play too?", "Oh, may I hold your {o.noun}?", "Will you let me have a turn?"]))
    t.say("h", t.pick(["No! It is mine.", "No, you will break it.", "Go away. I want to play alone."]), t.pick(["", "", "and held it tight"]))
    t.tell("{f} [looked at the ground|said nothing|turned around] and [walked away|went home|sat down far away].")
    t.para()
    t.tell("{h} played with {o.the} [all alone|alone].", t.pick(["At first it was fun. But after a while it was boring.", "But it was not as much fun as {h.he} had thought.", "Nobody laughed with {h.him}, and nobody clapped."]))
    bad = t.random.random()
    if bad < 0.5:
        t.tell(t.pick(["Then the wind blew {o.the} up into a tree.", "Then {o.the} fell into a deep hole.", "Then {o.the} rolled under a heavy stone.", "Then {o.the} got stuck between two rocks."]))
        t.tell("{h} tried to reach it, but {h.he} [was too small|could not get it out|was not strong enough].")
        feel(t, "h", "sad")
        t.tell("{f} [saw it|heard {h.him} crying|looked back] and came [running|back].")
        t.say("f", t.pick(["I will help you.", "Let me help. Together we can do it."]))
        t.tell(t.pick(["{f} climbed on {h}'s shoulders and got {o.the}.", "They found a long stick and worked together until {o.the} was free.", "They pulled and pulled, and at last {o.the} came out."]))
        t.say("h", t.pick(["You helped me, and I was so mean to you. I am sorry.", "I am sorry, {f}. I should have shared with you."]))
    else:
        feel(t, "h", "lonely")
        t.tell("{h} [thought about|remembered] {f}'s sad face.", "{h.He} [went home and told {m} about it|sat down next to {m} and sighed].")
        t.say("m", t.pick(["How would you feel if {f} did that to you?", "A {o.noun} can not laugh with you. A friend can.", "What do you think you could do about it?"]))
        t.tell("{h} thought for a [long time|little while]. Then {h.he} picked up {o.the} and ran to {f}'s " + ("den" if f.species else "house") + ".")
        t.say("h", t.pick(["I am sorry, {f}. Do you want to play with me?", "I was not kind. Please play with me."]))
    t.say("f", t.pick(["That is all right.", "I forgive you. Let us play!", "Of course I will!"]))
    t.tell("[So {h} gave {o.the} to {f}|{h} let {f} have the first turn|{h} put {o.the} in {f}'s hands].", "They took turns and [laughed|played] until [the sun went down|the stars came out|it was time for supper].")
    feel(t, "h", "happy")
    moral(t, "share")
    goodbye(t)
    return t.pick(["{h} Learns to Share", "{h} and the {o.Noun}", "The {o.Adjective} {o.Noun}"])


def plot_truth(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    o = n["o"] = Thing(*t.pick([("vase", "blue"), ("vase", "tall"), ("plate", "white"), ("clock", "old"), ("cup", "golden"), ("lamp", "green"), ("mirror", "round"),
                                ("jar", "big"), ("window", "kitchen"), ("teapot", "red"), ("bowl", "yellow"), ("pot", "flower")]))
    opening(t)
    t.tell("In the house there was {o.a}. {m} [loved it very much|had got it from {m.his} own mother|was very proud of it].")
    t.say("m", t.pick(["Please be careful with {o.the}.", "Do not play near {o.the}, {h}."]))
    t.tell(day(t) + ", {m} went [to the market|out to the garden|to see a friend], and {h} was alone.",
           t.pick(["{h} ran through the house and played with a ball.", "{h} danced and jumped from chair to chair.", "{h} wanted to see {o.the} up close.", "{h} chased a fly around the room."]))
    t.tell("Crash! [{o.the.X}|The {o.noun}] fell [down|to the floor|over] and broke into [two|three|many|a hundred] pieces.".replace("{o.the.X}", "The {o}"))
    feel(t, "h", t.pick(["scared", "worried"]))
    n["hide"] = t.pick(["under the bed", "behind the curtain", "in a box", "under the rug", "behind the door", "at the bottom of the cupboard"])
    t.tell("{h} hid the pieces {hide}[| and went to {h.his} room|, where nobody would look].")
    t.para()
    t.tell("When {m} came home, {m.he} looked around.")
    t.say("m", t.pick(["Where is my {o.noun}?", "{h}, have you seen my {o.noun}?", "What happened to {o.the}?"]))
    lied = t.chance(0.7)
    if lied:
        blame = t.pick(["the cat", "the wind", "the dog", "a bird"])
        n["blame"] = blame
        t.say("h", t.pick(["I do not know. Maybe it was {blame}.", "It was {blame}!", "I think {blame} did it."]))
        t.tell("{m} [looked sad|said nothing|shook {m.his} head]. {h}'s [stomach|tummy|heart] felt [heavy|strange|like a stone].")
        t.tell(t.pick(["At supper, {h} could not eat.", "That night, {h} could not sleep.", "{h} tried to play, but nothing was fun."]),
               t.pick(["The lie felt bigger and bigger.", "{h.He} kept thinking about the pieces {hide}.", "{blame.X} had done nothing wrong, and that made it even worse.".replace("{blame.X}", blame[0].upper() + blame[1:])]))
        t.tell("[At last|In the end|Finally], {h} [got up|stood up] and went to {m}.")
        t.say("h", t.pick(["It was not {blame}. It was me. I broke {o.the}, and I am sorry.", "I have to tell you something. I broke {o.the}, and then I told a lie."]))
    else:
        t.tell("{h} wanted to say that {h.he} did not know. But {h.he} looked at {m} and could not lie.")
        t.say("h", t.pick(["I broke it. I am so sorry.", "It was me. I was not careful, and it broke."]))
    t.tell("{h} [took|brought|got] the pieces from {hide}.".replace("from {hide}", {"u": "out", "b": "out", "i": "out", "a": "out"}[n["hide"][0]]))
    t.say("m", t.pick(["I am sad about the {o.noun}, but I am glad that you told me the truth.", "Thank you for being honest. That was not easy.", "A {o.noun} can be mended. Trust is harder to mend."]))
    t.para()
    t.tell(t.pick(["Together they glued the pieces, one by one.", "{m} got some glue, and they worked on it all evening.", "The next day they mended it together at the kitchen table."]),
           t.pick(["It did not look new, but {m} put it back in its place.", "There were cracks in it, but {m} said they made it special.", "It was a bit crooked, and they both laughed."]))
    feel(t, "h", "happy")
    moral(t, "truth")
    goodbye(t)
    return t.pick(["The Broken {o.Noun}", "{h} Tells the Truth", "{h} and the {o.Adjective} {o.Noun}"])


def plot_favour(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    c = n["c"] = t.animal()
    while c.species in ("elephant", "lion", "bear", "deer", "pony", "donkey") and t.chance(0.5):
        c = n["c"] = t.animal()
    p = n["p"] = t.place()
    opening(t)
    t.tell(day(t) + ", {h} was {p.at} when {h.he} heard a [small|soft|sad|strange] [cry|sound|voice].".replace("{p.at}", p.at))
    hurt, fix = t.pick([("its foot was caught under a stone", "lifted the stone"), ("it had a thorn in its foot", "pulled the thorn out very gently"),
                        ("it was caught in an old net", "cut the net"), ("it had hurt its leg", "tied a soft cloth around the leg"),
                        ("it was stuck in the mud", "pulled it out of the mud"), ("it was too weak to walk, because it had not eaten for days", "gave it bread and water"),
                        ("its tail was caught in a fence", "bent the wire and set it free")])
    n["hurt"], n["fix"] = hurt, fix
    t.tell("It was a {c.species}. The poor {c.species} could not [go on|move|get home], because {hurt}.")
    cs = "the " + c.species
    t.say(cs, t.pick(["Please help me!", "Please do not hurt me.", "It hurts so much."]))
    t.say("h", t.pick(["Do not be afraid. I will help you.", "Hold still. I will be very careful.", "You poor thing! Let me see."]))
    t.tell("{h} {fix}.", t.pick(["It took a long time, but at last it was done.", "The {c.species} shook, but it trusted {h}.", "Then {h.he} stayed until the {c.species} felt better."]))
    t.say(cs, t.pick(["Thank you. One day I will help you too.", "You are kind. I will not forget it."]))
    t.tell(t.pick(["{h} smiled. \"You are so [small|little]. How could you help me?\"" if c.species in "mouse squirrel frog sparrow mole lizard hedgehog crow duck rabbit".split()
                   else "{h} laughed and waved goodbye.", "Then the {c.species} [ran|went] away between the [trees|bushes]."]))
    t.para()
    t.tell("[Many days later|A week later|Some weeks later|When winter came], {h} " + t.pick(["went out to [gather wood|pick berries|look for mushrooms]", "was on the way to see [a friend|the market|the old bridge]"]) + ".")
    k = t.random.random()
    if k < 0.35:
        t.tell("[Snow|Fog|Rain] came down, and soon {h} could not see the path. {h.He} was lost.")
        feel(t, "h", "scared")
        t.tell("Then {h.he} saw two bright eyes. It was the {c.species}!")
        t.say(cs, t.pick(["Follow me. I know every path here.", "You helped me, and now I will help you. Come!"]))
        t.tell("The {c.species} went ahead, and {h} followed step by step until {h.he} saw the lights of home.")
    elif k < 0.7:
        t.tell("[Suddenly|All at once] the ground broke, and {h} fell into a deep [pit|hole]. The walls were too steep to climb.")
        t.say("h", "Help! Is anybody there?")
        t.tell("[Nobody came for a long time|For a long time it was quiet]. Then a face looked over the edge. It was the {c.species}!")
        t.say(cs, t.pick(["Wait here. I will get help!", "Now it is my turn to help you."]))
        t.tell(t.pick(["The {c.species} brought a long, strong vine, and {h} climbed out.", "The {c.species} called all its friends, and together they pushed a log into the hole. {h} climbed out."]))
    else:
        t.tell("At the river the bridge was gone, and the water was [deep|wild and fast].", "{h} [had to get home before dark|did not know what to do].")
        t.tell("Then the {c.species} came out of the [grass|bushes|trees].")
        t.say(cs, t.pick(["There is a row of stones down the river. I will show you.", "I know a safe way across. Come with me."]))
        t.tell("The {c.species} showed {h} the way, and {h.he} crossed the river with dry feet.")
    t.say("h", t.pick(["You saved me! Thank you.", "You really did come back to help me.", "Thank you, my friend."]))
    t.say(cs, t.pick(["You helped me first.", "That is what friends do.", "I told you that I would not forget."]))
    t.tell("From then on, {h} and the {c.species} were [the best of friends|friends].")
    moral(t, "help")
    goodbye(t)
    return t.pick(["{h} and the {c.Species}", "The Grateful {c.Species}", "A Friend in the {X}".replace("{X}", t.pick(["Woods", "Snow", "Rain"]))])


def plot_race(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want) if want else t.animal() if t.chance(0.6) else t.child()
    f = n["f"] = t.animal() if h.species else t.child()
    p = n["p"] = t.place()
    n["trait"] = "proud"
    game, verb = t.pick([("running race", "run"), ("swimming race", "swim"), ("boat race", "row"), ("climbing contest", "climb"), ("sled race", "slide"), ("jumping contest", "jump")])
    n["game"], n["verb"] = game, verb
    kind = h.species or h.boy
    t.tell(t.pick([f"{{h}} was the fastest {kind} in the [village|valley|forest], and {{h.he}} never stopped talking about it.",
                   f"There was once a {kind} named {{h}} who [could {{verb}} faster than anyone|always wanted to be first]. ",
                   f"[Once|Once upon a time] there was a {kind} named {{h}}. {{h.He}} was very proud, because {{h.he}} could {{verb}} so well."]))
    t.say("h", t.pick(["Nobody can beat me!", "I am the best, and you are all slow.", "Who wants to lose against me?"]))
    t.tell("{f} was [slow|small|quiet] and [never boasted|worked hard every day|practised every morning].")
    t.tell(day(t) + ", there was a {game} near {p}. The prize was " + t.pick(["a golden cup", "a big cake", "a basket of apples", "a silver bell", "a red ribbon"]) + ".")
    n["prize"] = [x for x in ["golden cup", "big cake", "basket of apples", "silver bell", "red ribbon"] if x in t.out[-1]][0]
    t.say("f", t.pick(["I will try too.", "May I take part?"]))
    t.tell("{h} laughed.")
    t.say("h", t.pick(["You? You will never win!", "Then I can take a nap and still win."]))
    t.para()
    t.tell("One, two, three, go! {h} was soon far ahead.", t.pick(["{h.He} looked back and saw {f} far behind.", "{h.He} could not even see {f} any more."]))
    k = t.random.random()
    if k < 0.5:
        t.tell(t.pick(["\"I have so much time,\" {h} thought. {h.He} [lay down under a tree|stopped to eat some berries|sat down to rest] and fell asleep.",
                       "{h} stopped to show off for the crowd. {h.He} waved and bowed and waved again."]))
        t.tell("{f} went on, [step by step|slowly and steadily|little by little], and never stopped.", "When {h} [woke up|looked up again], {f} was almost at the end!",
               "{h} [hurried|rushed] as fast as {h.he} could, but it was too late. {f} won the {prize}.")
        feel(t, "h", "sorry")
        t.say("h", t.pick(["I am sorry that I laughed at you. You earned it.", "You did well, {f}. I was foolish."]))
        t.say("f", t.pick(["Thank you. Shall we share the {prize}?" if "cake" in n["prize"] or "apples" in n["prize"] else "Thank you. Will you practise with me tomorrow?", "You are still very fast. Let us practise together."]))
        moral(t, "pride")
    elif k < 0.8:
        t.tell("Then {h} tripped over a [root|stone|rope] and hurt {h.his} [leg|foot|knee].")
        t.say("h", t.pick(["Ow! I can not go on!", "Oh no, my leg!"]))
        t.tell("{f} came closer. {f} could win now! But {f.he} [stopped|turned around].")
        t.say("f", t.pick(["Lean on me. We will go together.", "A friend is more important than a {prize}."]))
        t.tell("{f} helped {h}, and they reached the end together, the very last of all. Everybody clapped.", "The judge gave the {prize} to {f} for being so kind.")
        t.say("h", t.pick(["You are the real winner.", "I will never boast again."]))
        moral(t, "pride")
    else:
        t.tell("But then {h} saw [a little bird|a small child|an old woman] who [had fallen down|needed help|was stuck in the mud]. {h.He} [stopped|thought for a moment].",
               "If {h.he} stopped, {h.he} would lose. But {h} stopped and helped.", "{f} went by and won the {prize}.")
        t.say("f", t.pick(["Why did you stop?", "You were so far ahead! What happened?"]))
        t.say("h", t.pick(["Somebody needed me.", "Some things are more important than winning."]))
        t.tell("{f} was quiet. Then {f.he} put the {prize} in {h}'s hands.")
        moral(t, "help", "f")
    goodbye(t)
    return t.pick(["The Great {X}".replace("{X}", game.title()), "{h} and {f}", "{h} Wants to Win"])


def plot_make(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    m = n["m"] = t.adult(h)
    thing, parts, why = t.pick([
        ("cake", ["flour", "eggs", "milk", "sugar"], "eat"), ("kite", ["paper", "string", "two sticks", "glue"], "fly"), ("raft", ["logs", "rope", "a sail", "nails"], "sail"),
        ("birdhouse", ["wood", "nails", "paint", "straw"], "bird"), ("soup", ["carrots", "onions", "salt", "beans"], "eat"), ("lantern", ["paper", "a candle", "wire", "paint"], "light"),
        ("sled", ["wood", "rope", "nails", "wax"], "snow"), ("tree house", ["planks", "nails", "a ladder", "a window"], "house"), ("scarecrow", ["straw", "an old hat", "a coat", "a pole"], "field"),
        ("pie", ["apples", "flour", "butter", "sugar"], "eat"), ("snowman", ["snow", "a carrot", "two buttons", "a scarf"], "snowman")])
    n["thing"], miss = thing, t.pick(parts)
    n["miss"] = miss
    have = [x for x in parts if x != miss]
    opening(t)
    who_for = t.pick(["for {m}", "for {f}", "for the village fair", "for {f}'s birthday", ""]) if why in ("eat", "light") else ""
    n["for"] = t.fill(who_for)
    art = "some" if thing == "soup" else "a"
    t.tell(day(t) + f", {{h}} [wanted|decided] to make {art} {{thing}} {{for}}.".replace(" .", "."))
    t.say("h", t.pick([f"Today I will make {art} {{thing}}!", f"{{f}}, will you help me make {art} {{thing}}?"]))
    if "{f}, will" in t.out[-1] or f.name + ", will" in t.out[-1]:
        t.say("f", t.pick(["Of course!", "I would love to!"]))
    t.tell(f"{{h.He}} [looked for|gathered] everything {{h.he}} needed. {{h.He}} had {have[0]}, {have[1]} and {have[2]}. But there [was|was] no [more |]{miss.replace('a ', '').replace('an ', '').replace('two ', '')}.".replace("was no more carrot", "was no carrot"))
    feel(t, "h", "worried")
    t.para()
    helper = n["w"] = t.villager()
    t.tell("So {h} [went|ran|walked] to {w}.")
    t.say("h", "Excuse me, do you have " + ("any " if not miss.startswith(("a ", "an ", "two ")) else "") + miss + "?")
    deal = t.pick([("my hen has run away", "find my hen", "{h} looked behind every bush and found the hen [in a bucket|under a cart|on the roof]"),
                   ("my basket is too heavy for me", "carry my basket home", "{h} carried the basket all the way up the hill"),
                   ("my gate is broken", "hold the gate while I fix it", "{h} held the gate until the last nail was in"),
                   ("I can not reach the top shelf", "get the jar down for me", "{h} stood on a chair and got the jar down"),
                   ("my glasses are lost", "look for my glasses", "{h} looked everywhere. The glasses were on {w}'s own head"),
                   ("my garden is so dry", "water my flowers", "{h} carried water to every flower")])
    t.say("w", f"I do, but {deal[0]}. If you {deal[1]}, you may have {'it' if miss.startswith(('a ', 'an ')) else 'what you need'}.")
    t.tell(deal[2] + ".")
    t.say("w", t.pick(["Thank you! Here you are.", "What a good helper you are! Take this."]))
    t.tell(f"Now {{h}} had everything. {{h.He}} went home and began.")
    t.tell({"eat": "{h.He} [mixed|stirred] and [tasted|stirred] until it smelled [good|wonderful].", "fly": "{h.He} cut and tied and glued until it was done.", "sail": "{h.He} tied the logs together and put up the sail.",
            "bird": "{h.He} hammered and painted until it looked like a tiny home.", "light": "{h.He} bent the wire and folded the paper with care.", "snow": "{h.He} sawed and hammered until it was strong.",
            "house": "{h.He} worked high up in the old tree for three days.", "field": "{h.He} stuffed and tied until it stood up straight.", "snowman": "{h.He} rolled one big ball, one smaller ball and one little ball."}[why])
    t.para()
    bad = t.chance(0.5)
    if bad:
        t.tell({"eat": "But {h.he} forgot to watch it, and [the first one|it] burned a little.", "fly": "But the first time it fell straight down.", "sail": "But at first it tipped over and {h} got wet.", "bird": "But at first no bird came.",
                "light": "But the wind blew it out.", "snow": "But at first it would not move.", "house": "But then the ladder fell over.", "field": "But the crows only laughed at it.", "snowman": "But then the head fell off."}[why])
        t.say("f", t.pick(["Do not give up. Try once more!", "Let me help you. Two are better than one."]))
        t.tell("{h} [and {f} tried|tried] again, and this time it [worked|went well].")
    t.tell({"eat": "Everyone sat down at the table. {m} took a big bite and [smiled|laughed].", "fly": "The kite rose up, higher and higher, over the trees and the roofs.", "sail": "{h} and {f} sailed across the pond like two captains.",
            "bird": "A little bird looked inside, went in and began to sing.", "light": "When night came, the lantern shone like a little moon.", "snow": "{h} and {f} flew down the hill, and the snow flew up behind them.",
            "house": "From up there {h} and {f} could see the whole valley.", "field": "That day not one crow came to steal the corn.", "snowman": "The snowman smiled at everyone who walked by."}[why])
    t.say("m" if t.chance(0.5) else "f", t.pick(["This is the best {thing} in the world!", "You made this? How wonderful!", "I am so proud of you, {h}."]))
    feel(t, "h", t.pick(["proud", "happy"]))
    moral(t, t.pick(["patience", "help"]))
    goodbye(t)
    return t.pick(["{h} Makes " + ("Soup" if thing == "soup" else "a " + thing.title()), "The {X}".replace("{X}", thing.title()), "{h}'s {X}".replace("{X}", thing.title())])


def plot_astray(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    p = n["p"] = Place(t.pick([x for x in PLACES if x[0] in ("the forest", "the hill", "the cave", "the beach", "the meadow", "the river", "the lake")]))
    opening(t)
    lure = t.pick(["a blue butterfly", "a golden feather in the wind", "the sound of sweet music", "a trail of red berries", "a white rabbit", "a shining light", "a rainbow", "a strange little door"])
    n["lure"] = lure
    t.tell(day(t) + ", {h} " + t.pick(["went for a walk near {p}", "was playing near {p}"]) + ".")
    t.say("m", t.pick(["Do not go too far, {h}.", "Be home before dark!", "Stay on the path, {h}."]))
    t.say("h", t.pick(["I will!" if "before" in t.out[-1] or "Stay" in t.out[-1] else "I will not!", "I promise."]))
    t.tell(f"Then {{h}} {'heard' if 'sound' in lure else 'saw'} {{lure}}. {{h.He}} [forgot {{h.his}} promise|forgot everything else|wanted to see more] and followed it, [farther and farther|on and on|over stones and under branches].")
    t.tell("When {h} stopped, nothing looked [the same|familiar]. {h.He} was lost.", "The sun was [going down|already low], and it was getting [cold|dark].")
    feel(t, "h", "scared")
    t.para()
    t.say("h", t.pick(["I should have listened.", "Where is the way home?", "Hello? Is anybody there?"]))
    way = t.random.random()
    if way < 0.3:
        c = n["c"] = t.animal("owl" if t.chance(.4) else None)
        t.tell("A voice answered from [above|behind|a bush]. It was " + ("an" if c.species[0] in "aeiou" else "a") + " {c.species}.")
        t.say("the " + c.species, t.pick(["Why are you crying?", "What are you doing here so late?"]))
        t.say("h", t.pick(["I followed {lure}, and now I am lost.", "I can not find my way home."]))
        t.say("the " + c.species, t.pick(["Look for the tallest tree. Behind it there is a stream, and the stream will take you home.", "I know the way. Follow me and stay close."]))
        t.tell("{h} did what the {c.species} said.", "[Before long|After a while|At last] {h.he} saw the light in the window of {h.his} own home.")
    elif way < 0.65:
        n["clue"] = t.pick(["the stream runs down to the village", "the church bell rings every evening", "moss grows on the north side of the trees", "the brightest star stands over the mill", "smoke rises from the chimney at home"])
        t.tell("Then {h.he} remembered what {m} had once said: {clue}.", "{h.He} [wiped {h.his} eyes|took a deep breath|stood up] and [looked around|listened].",
               {"t": "{h.He} found it and followed it, step by step.", "m": "{h.He} felt the trees, one after another, and walked on.", "s": "{h.He} climbed up a rock and saw it, far away."}[n["clue"][0]],
               "[It was a long walk|The way was long], but at last {h.he} saw {h.his} home.")
    else:
        t.tell("{h} looked down and saw {h.his} own footprints in the [mud|sand|snow|soft ground].")
        t.say("h", t.pick(["If I follow them back, I will get home!", "These are my steps. They will show me the way."]))
        t.tell("Step by step {h.he} followed the footprints back.", t.pick(["Once they were gone, but {h.he} looked around and found them again behind a log.", "It grew darker, but the moon came out and showed {h.him} the way."]),
               "At last {h.he} was back on the path.")
    t.tell("{m} was standing at the door [with a lamp|and calling {h.his} name].")
    t.say("m", t.pick(["I was so worried!", "{h}! Where have you been?", "There you are at last!"]))
    t.say("h", t.pick(["I am sorry. I followed {lure} and did not think of my promise.", "I went too far, and I am sorry."]))
    t.tell("{m} [hugged {h.him}|gave {h.him} hot soup|put a warm blanket around {h.him}].")
    moral(t, "listen")
    goodbye(t)
    return t.pick(["{h} Gets Lost", "The Way Home", "{h} and {X}".replace("{X}", " ".join(w.capitalize() if w not in ("a", "of", "in", "the") else w for w in lure.split()))])


def plot_mystery(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    c = n["c"] = t.animal(t.fresh("mouse squirrel hedgehog rabbit cat mole fox badger frog otter".split()))
    one, many = t.pick(FOODS)
    n["one"], n["many"] = one, many
    opening(t)
    t.tell("[Every evening|Every day] {h} put [five|six|some] {many} on the [window sill|table|shelf]. Every morning one {one} was [gone|missing].")
    t.say("h", t.pick(["Who is taking my {many}?", "This is a mystery!", "Somebody is eating my {many}!"]))
    t.tell("{h} told {f} about it.")
    t.say("f", t.pick(["Let us find out together!", "Maybe it is a ghost!", "We need a plan."]))
    clue = t.pick([("flour on the floor", "The next morning there were tiny footprints in the flour"), ("a little bell on a string", "In the middle of the night the bell rang"),
                   ("a thread around the plate", "In the morning the thread led out of the door"), ("nothing at all, but they hid and watched", "At midnight they heard small steps")])
    t.tell(f"That night they put {clue[0]}." if "nothing" not in clue[0] else "That night they hid [behind the curtain|under the table] and watched.", clue[1] + ".")
    t.para()
    n["spot"] = t.pick(["a hole in the wall", "an old box in the shed", "a hollow tree", "a nest under the stairs", "a heap of leaves behind the house"])
    t.tell("They followed the [tracks|trail|sound], [past the well|through the garden|on tiptoe], until they came to {spot}.",
           "Inside sat a {c.species}[ with big eyes| with three tiny babies|, thin and cold]. Beside it lay [the missing {one}|a few crumbs].".replace("a owl", "an owl").replace("a e", "an e").replace("a o", "an o"))
    t.out[-1] = t.out[-1].replace(" a owl", " an owl").replace(" a otter", " an otter").replace(" a elephant", " an elephant")
    cs = "the " + c.species
    t.say("f", t.pick(["So you are the thief!", "We found you!"]))
    t.say(cs, t.pick(["I am sorry. I was so hungry.", "Please do not be angry. My babies have nothing to eat.", "I was afraid to ask."]))
    if t.chance(0.5):
        feel(t, "h", "sorry")
    t.say("h", t.pick(["You do not have to steal. You only have to ask.", "If you are hungry, come and eat with us.", "We have enough {many} for you too."]))
    t.tell(t.pick(["From then on, {h} put out one extra {one} every evening, and the {c.species} said thank you every time.", "After that, the {c.species} came to the door every day and got a {one} and a kind word.",
                   "The {c.species} came to live near {h} and watched the house at night, and nothing was ever missing again."]))
    t.tell("So the mystery was solved, and {h} and {f} had a new friend.")
    moral(t, t.pick(["help", "share"]))
    goodbye(t)
    return t.pick(["The Missing {X}".replace("{X}", many.title()), "{h} and the Mystery", "Who Took the {X}?".replace("{X}", many.title())])


def plot_newcomer(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    f = n["f"] = t.friend_of(h)
    o = n["o"] = t.toy(want)
    p = n["p"] = t.place()
    opening(t)
    kind = f.species or f.boy
    t.tell(day(t) + f", a new {kind} came to live nearby. {{f.His}} name was {{f}}.", t.pick(["{f} was very shy and did not speak to anyone.", "{f} came from far away and knew nobody.", "{f} stood alone and watched the others play."]))
    t.tell(t.pick(["Nobody asked {f} to play.", "The others said, \"{f} is strange.\"", "The others ran past {f} and did not look at {f.him}."]))
    if t.chance(0.5):
        t.tell("{h} remembered how it felt to be [new|alone].")
    t.tell("{h} saw that {f} was holding {o.a}.")
    t.say("h", t.pick(["Hello! I am {h}. What is that?", "I like your {o.noun}. My name is {h}.", "Hi! Do you want to play?"]))
    t.tell("{f} [looked up|did not answer at first|turned red].")
    t.say("f", t.pick(["It is my {o.noun}. I like to " + o.use + ".", "My grandma gave it to me before we moved here."]), t.pick(["in a quiet voice", "very softly", ""]))
    t.para()
    t.say("h", t.pick(["Will you show me?", "Come with me to {p}! I want to show you something.", "I like that too!"]))
    t.tell("So they went to {p} together. {f} showed {h} how to " + o.use + ", and {h} showed {f} " + t.pick(["the best place to sit", "where the frogs live", "a secret path", "how to whistle", "how to jump over the ditch"]) + ".")
    problem = t.random.random()
    if problem < 0.5:
        t.tell("Then [it began to rain|dark clouds came], and {h} had nothing to keep {h.him} dry. {f} [smiled|laughed].")
        t.say("f", t.pick(["My house is close. Come and have some hot tea!", "Come under my coat. There is room for two."]))
        t.tell("They sat [by the fire|in the warm kitchen] and told each other stories until the rain was over.")
    else:
        t.tell("The other " + ("animals" if h.species else "children") + " came to see [what was so funny|what they were doing].")
        t.say("h", t.pick(["This is {f}. {f} can do wonderful things!", "Come and play with us!"]))
        t.tell("Soon everyone wanted to [play with|talk to] {f}.", "{f} was not shy any more.")
    t.say("f", t.pick(["I am glad that I came here.", "This morning I had no friends, and now I have you.", "Thank you for talking to me."]))
    t.say("h", t.pick(["I am glad too.", "See you tomorrow!", "A new friend is the best thing in the world."]))
    t.tell("And every day after that they met {p.at}.".replace("{p.at}", p.at))
    goodbye(t)
    return t.pick(["The New Friend", "{h} and {f}", "A Friend for {f}"])


def plot_seed(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    f = n["f"] = t.friend_of(h)
    plant, fruit = t.pick([("sunflower", "seeds"), ("apple tree", "apples"), ("pumpkin", "pumpkins"), ("bean", "beans"), ("rose", "roses"), ("strawberry plant", "strawberries"), ("pear tree", "pears"), ("carrot", "carrots")])
    n["plant"], n["fruit"] = plant, fruit
    opening(t)
    t.tell(day(t) + ", {m} gave {h} a tiny seed.")
    t.say("h", t.pick(["It is so small! What is it for?", "What will it be?"]))
    t.say("m", t.pick(["Put it in the ground and give it water, and you will see.", "Wait and see. But you must be patient."]))
    t.tell("{h} [dug a little hole|made a hole in the earth], put the seed in and [covered it|gave it water].", t.pick(["{h.He} sat down and waited. Nothing happened.", "The next morning {h.he} ran out to look. There was nothing but earth."]))
    t.say("h", t.pick(["It is not growing!", "Maybe it is a bad seed.", "Why does it take so long?"]))
    t.say("m", t.pick(["Good things need time.", "It is working under the ground, where you can not see it."]))
    t.para()
    t.tell("{h} gave it water [every day|every morning].", "After [one week|two weeks|many days] a [small|tiny] green leaf came out of the ground!")
    feel(t, "h", "happy")
    bad = t.pick([("a hungry snail came and ate half of the leaf", "{h.He} carried the snail to a far corner of the garden and gave it a cabbage leaf"), ("a cold night came", "{h.He} covered the little plant with {h.his} own scarf"),
                  ("a hot week came and the earth was dry", "{h.He} carried water from the well, one cup at a time"), ("a strong wind bent it down", "{h.He} put a stick in the ground and tied the plant to it"),
                  ("weeds grew all around it", "{h.He} pulled out the weeds one by one")])
    t.tell(f"[But then|One day] {bad[0]}.", f"{bad[1]}.")
    if t.chance(0.5):
        t.say("f", t.pick(["Why do you work so hard? Come and play!", "Leave that plant and come with me!"]))
        t.say("h", t.pick(["Not yet. My plant needs me.", "I will come when I am done."]))
    t.tell("The plant grew and grew. [By summer|In the end] it was a [big|tall|beautiful] {plant}, full of {fruit}." if plant not in ("rose", "sunflower", "carrot") else "The plant grew and grew. [By summer|In the end] it was the [biggest|most beautiful] {plant} of all.")
    t.tell(t.pick(["{h} gave some to {m} and some to {f}, and there was still enough.", "{h} called {m} and {f}, and they all came to see it." ]) if plant not in ("rose", "sunflower") else "{m} and {f} came to see it and could not stop looking.")
    t.say("f", t.pick(["Now I see why you worked so hard.", "I want to plant a seed too! Will you help me?"]))
    t.say("m", t.pick(["You were patient, and look what you have now.", "You did this all by yourself, {h}."]))
    feel(t, "h", "proud")
    if t.chance(0.6):
        t.tell("{h} kept one little seed for next [year|spring].")
    moral(t, "patience")
    goodbye(t)
    return t.pick(["The Little Seed", "{h} Plants a Seed", "{h}'s {X}".replace("{X}", plant.title())])


def plot_wish(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    o = n["o"] = t.toy(want)
    m = n["m"] = t.adult(h)
    p = n["p"] = t.place()
    opening(t)
    t.tell("{h} was never [happy|content] with what {h.he} had.")
    t.tell(day(t) + ", {h.he} found {o.a} " + t.pick(p.spots) + " " + (p.at) + ".", "When {h.he} [touched|rubbed|picked up] it, a [tiny fairy|little man with a long beard|soft voice|small blue light] [came out of it|appeared].".replace("soft voice appeared", "soft voice came out"))
    g = "the fairy" if "fairy" in t.out[-1] else "the little man" if "little man" in t.out[-1] else "the voice"
    t.say(g, t.pick(["You may have one wish. Think well!", "I will give you one wish, {h}.", "Make a wish, but be careful."]))
    wish, result, bad, undo = t.pick([
        ("everything I touch to turn into candy", "{h.He} touched a leaf, and it was candy. {h.He} touched a stone, and it was candy too", "Then {h.he} touched {h.his} bed, and it was sticky and hard. {h.He} touched {h.his} water, and it was candy too. {h} was so thirsty", "water"),
        ("to be as big as a house", "{h.He} grew and grew until {h.he} could look over the trees", "But now {h.he} did not fit through the door. {h.His} friends were afraid and ran away", "small"),
        ("it to be summer every day", "At once the sun came out and it was hot", "But it never rained again. The flowers dried up, and the river became thin", "rain"),
        ("to be able to fly like a bird", "{h.He} rose up into the air, over the roofs and the trees", "But {h.he} could not come down again. The wind was cold, and {h.he} was all alone in the sky", "ground"),
        ("all the toys in the world", "Toys fell from the sky, more and more of them", "But soon the house was full, and nobody could find the door. And no other child had a toy left", "less"),
        ("never to go to bed again", "That night {h} played and played while the others slept", "But after three days {h.he} was so tired that {h.he} could not even smile, and {h.he} could not fall asleep", "sleep"),
        ("to be the king of the whole land" if h.he == "he" else "to be the queen of the whole land", "At once {h.he} sat on a golden chair with a crown on {h.his} head", "But everyone bowed and nobody wanted to play. The crown was heavy, and the castle was cold", "home")])
    t.say("h", t.pick(["I wish " + ("for " if wish.startswith(("all",)) else "" if wish.startswith(("to", "never", "it")) else "for ") + wish + "!"]).replace("I wish never to", "I wish never to"))
    t.tell(result + ".", "[At first|For a while] it was wonderful.")
    t.para()
    t.tell(bad + ".")
    feel(t, "h", t.pick(["sad", "scared", "lonely"]))
    if t.chance(0.5):
        t.tell("{h} thought of {m} and of [the warm kitchen|supper at the round table|the songs they sang in the evening].")
    t.say("h", t.pick(["I do not want this any more!", "I made a foolish wish.", "Please, take my wish back!"]))
    t.tell(t.pick(["{h.He} took {o.the} in {h.his} hands again.", "{h.He} looked for {o.the} and held it tight.", "{o.the.X} began to shine.".replace("{o.the.X}", "The {o}")]))
    t.say(g, t.pick(["What have you learned?", "Do you know now what you really want?"]))
    t.say("h", t.pick(["I had enough all the time. I only want things to be as they were.", "I want to be just {h} again."]))
    t.tell({"water": "The next moment there was a cup of cool, clear water in {h.his} hand.", "small": "The next moment {h} was small again and stood in front of {h.his} own door.", "rain": "The next moment a soft rain began to fall, and the flowers lifted their heads.",
            "ground": "The next moment {h.his} feet touched the soft grass.", "less": "The next moment the toys were gone, all but {o.the}.", "sleep": "The next moment {h.his} eyes closed, and {h.he} slept for a night and a day.",
            "home": "The next moment the crown was gone, and {h} was back at home."}[undo])
    t.tell("{m} [came in|opened the door|called {h.his} name].")
    t.say("m", t.pick(["Supper is ready!", "There you are! Where have you been?"]))
    t.tell("{h} [ran to|hugged] {m} and " + t.pick(["did not let go for a long time.", "said, \"I am so glad to be here.\"", "had never been so glad."]))
    moral(t, "enough")
    goodbye(t)
    return t.pick(["{h}'s Wish", "The Magic {o.Noun}", "{h} and the Magic {o.Noun}"])


def plot_gift(t, want=None):
    n = t.names
    h = n["h"] = t.hero(want)
    m = n["m"] = t.adult(h)
    f = n["f"] = t.friend_of(h)
    opening(t)
    t.tell("Tomorrow was {m}'s birthday, and {h} [wanted to give {m.him} something nice|had no present].", "{h} [had no money|had only one coin].")
    n["o"] = t.toy()
    t.say("h", t.pick(["What can I give {m.him}?", "I wish I could buy {m.him} {o.a}."]))
    t.say("f", t.pick(["The best presents are made, not bought.", "Think about what {m.he} likes.", "Maybe you can make something."]))
    gift, how, wreck = t.pick([("a picture of the whole family", "{h} took paper and colours and painted all [morning|afternoon]", "Then a cup of water fell over, and the colours ran into each other"),
                               ("a crown of flowers", "{h} picked [white|yellow|blue] flowers in the meadow and tied them together", "Then a goat came and ate half of the flowers"),
                               ("a song", "{h} sat under a tree and made up a song about {m}", "Then {h.he} forgot the second part of it"),
                               ("a little wooden boat", "{h} found a piece of wood and cut it with great care", "Then the mast broke in two"),
                               ("a honey cake", "{h} mixed flour and honey and put it in the oven", "Then the cake fell flat in the middle"),
                               ("a chain of shells", "{h} went to the beach and looked for the prettiest shells", "Then the string broke, and the shells rolled everywhere")])
    n["gift"] = gift
    t.tell("Then {h} had an idea. {h.He} would make {gift}.", how + ".")
    t.para()
    t.tell(wreck + ".")
    feel(t, "h", t.pick(["sad", "angry"]))
    t.say("h", t.pick(["Now everything is ruined!", "I can not do it."]))
    t.say("f", t.pick(["It is not so bad. Let me help you.", "Wait! We can still save it."]))
    t.tell({"a picture of the whole family": "They turned the spots of colour into clouds and birds, and it looked even better.", "a crown of flowers": "They filled the holes with green leaves and red berries, and it looked even better.",
            "a song": "They hummed it together, and {f} found a new second part.", "a little wooden boat": "They made a new mast from a straight twig and a sail from a leaf.",
            "a honey cake": "They filled the hole with strawberries, and it looked like a cake for a queen.", "a chain of shells": "They picked up every shell and used a stronger string."}[gift])
    t.tell("[The next morning|On the birthday], {h} " + ("sang" if gift == "a song" else "gave") + (" {m} the song." if gift == "a song" else " {gift} to {m}."))
    t.say("h", t.pick(["Happy birthday! I made it for you.", "I had no money, so I made this."]))
    t.tell("{m}'s eyes [grew wide|shone|filled with happy tears].")
    t.say("m", t.pick(["This is the most beautiful present of all.", "You made this for me? I will [keep|remember] it forever.", "No shop in the world has anything like it."]))
    t.tell("{h} looked at {f} and winked.")
    feel(t, "h", "happy")
    if t.chance(0.6):
        t.tell("And {m} cut the birthday cake, and {f} got the biggest piece.")
    goodbye(t)
    return t.pick(["A Present for {X}".replace("{X}", m.name.split()[-1].title()), "{h}'s Present", "The Best Present"])


HOME = [plot_lost, plot_earn, plot_fear, plot_share, plot_truth, plot_favour, plot_race, plot_make, plot_astray, plot_mystery,
         plot_newcomer, plot_seed, plot_wish, plot_gift]
WITH_TOY = [plot_lost, plot_earn, plot_share, plot_newcomer, plot_wish]
