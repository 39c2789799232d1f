# SPDX-License-Identifier: Apache-2.0
"""The words that stories and dialogues are made of: names, animals, things, places, feelings, morals."""

GIRLS = ("Lily Mia Anna Ella Rosa Nora Sara Zoe Ivy Maya Lena Tara Ruby Emma Clara Daisy Molly Alice Lucy Hana Amy "
         "Eva June Nina Jane Kate Grace Poppy Olive Pearl Ada Bella Wendy Holly Tina Iris Sofia Olga Freya Martha Elsa Greta Heidi Ingrid Julia Laura Linda Maria Nadia Paula Rita Sally Tess Uma Vera Zara Amina Leila Priya Yuki Mei Carmen Lola Penny Dora Edith Flora Gwen Hope Joy Kira Lotte Mabel Nell Opal Petra Robin Stella Thea Una Violet Willa Yara Zelda Bonnie Cora Dolly Esme Fay Gina Hetty Jasmine Kitty Luna Minna Norah").split()
BOYS = ("Tom Ben Max Sam Leo Finn Jack Tim Omar Noah Hugo Luke Theo Adam Eli Oscar Dan Peter Milo Felix Ravi Kai Joe "
        "Paul Rob Gus Nick Will Toby Ian Fred Henry Ned Carl Alex Otto Arthur Bruno Charlie David Emil Frank George Harry Ivan Jonas Kurt Leon Marco Nils Oliver Pablo Quinn Rudy Simon Tariq Umberto Victor Walter Xavier Yusuf Zack Ahmed Boris Cyrus Diego Ernest Floyd Gabriel Hamid Isaac Jamal Kenji Lars Mateo Nathan Owen Philip Ralph Stefan Tobias Ulf Vincent Wilbur Alan Bill Chester Duncan Edgar Frederick Gordon Howard Jasper").split()
SPECIES = ("dragon robot unicorn snail bat kitten puppy wolf camel kangaroo koala panda seal swan goose parrot robin raccoon tiger zebra giraffe hamster dolphin whale crab bee ant butterfly caterpillar ladybird "
           "fox rabbit bear mouse squirrel hedgehog owl frog duck turtle badger otter deer cat dog pig goat sheep "
           "beaver mole crow sparrow hen pony donkey lizard penguin monkey elephant lion").split()
ANIMAL_NAMES = ("Pip Bo Dot Tilly Rusty Fern Hazel Moss Bramble Pepper Ginger Coco Patch Biscuit Nutmeg Willow Clover "
                "Button Pickle Tuppy Bean Maple Rolo Teddy Mimi Nibbles Fluff Sunny Shadow Snowy Benny Tuck Acorn Barley Bubbles Cinnamon Comet Cricket Dusty Echo Fidget Flick Frost Gizmo Honey Jasper Jelly Juniper Kiki Lemon Marble Max Mango Midnight Misty Noodle Olive Peanut Pebble Pippin Poppy Pumpkin Puzzle Quill Rocket Sage Scout Snuffle Sparkle Spike Sprout Storm Sugar Taffy Thistle Toffee Tumble Twig Velvet Waffle Whisper Zippy").split()
ADULTS = [("his mother", "her mother", "she"), ("his father", "her father", "he"), ("his grandma", "her grandma", "she"),
          ("his grandpa", "her grandpa", "he"), ("his aunt", "her aunt", "she"), ("his uncle", "her uncle", "he")]
VILLAGERS = [("the blacksmith", "he"), ("the nurse", "she"), ("the captain", "he"), ("the painter", "she"), ("the clockmaker", "he"), ("the cook", "she"), ("the carpenter", "he"), ("the beekeeper", "she"),
             ("the mayor", "he"), ("the doctor", "she"), ("the shoemaker", "he"), ("the singer", "she"), ("the woodcutter", "he"), ("the potter", "she"), ("the ferryman", "he"), ("the weaver", "she"), ("the candle maker", "he"),
             ("the baker", "he"), ("the farmer", "he"), ("the old fisherman", "he"), ("the shopkeeper", "she"),
             ("the teacher", "she"), ("the gardener", "he"), ("the tailor", "she"), ("the miller", "he"),
             ("the old woman by the well", "she"), ("the postman", "he"), ("the librarian", "she"), ("the shepherd", "he")]
TRAITS = ("brave kind curious shy clever cheerful quiet patient gentle careful stubborn lively proud hasty dreamy honest "
          "funny helpful thoughtful playful bold calm friendly merry polite modest nervous noisy plucky sleepy tidy wise busy loyal cautious daring eager gentle grumpy hungry jolly lonely lucky neat witty restless serious sensible").split()
COLOURS = "red blue green yellow white black brown purple orange pink golden silver grey".split()
# what a child may own: name, what one does with it, where it fits to be lost
TOYS = [("compass", "find the way with it"), ("telescope", "look at the stars through it"), ("violin", "play slow songs on it"), ("bicycle", "ride it down the lane"),
        ("backpack", "fill it with useful things"), ("candle", "watch the flame of it"), ("crown", "pretend to rule a kingdom with it"), ("mask", "surprise people with it"), ("puzzle", "put it together again and again"),
        ("pencil", "draw houses and ships with it"), ("notebook", "write down secret thoughts in it"), ("mirror", "make funny faces in it"), ("clock", "count the hours with it"), ("robot toy", "make it walk across the table"),
        ("teddy bear", "hug it in the dark"), ("skipping rope", "jump with it until dusk"), ("wagon", "pull it along the street"), ("sled", "race down the hill on it"), ("bracelet", "wear it to every party"),
        ("magnet", "pick up pins with it"), ("spinning top", "see how long it could spin"), ("bow", "tie it in a neat knot"), ("cape", "run with it like a hero"), ("boot", "splash in puddles with it"),
        ("jar", "collect pretty leaves in it"), ("music box", "listen to its tune"), ("painting", "look at it before bed"), ("wand", "pretend to do magic with it"), ("stone", "rub it for good luck"), ("pillow", "rest on it after lunch"),
        ("hammer", "fix small things with it"), ("trumpet", "wake everyone up with it"), ("lamp", "read by its light"), ("mitten", "keep warm with it in the snow"), ("kazoo", "hum songs through it"),
        ("ball", "throw it high in the air"), ("kite", "fly it on windy days"), ("drum", "play a marching song on it"),
        ("doll", "tell it secrets at night"), ("toy boat", "sail it on the pond"), ("whistle", "blow a happy tune"),
        ("scarf", "wear it every cold day"), ("hat", "wear it everywhere"), ("book", "read it under the big tree"),
        ("lantern", "light the path with it"), ("toy train", "push it round and round the room"),
        ("marble", "roll it across the floor"), ("necklace", "wear it on special days"), ("key", "keep it in a pocket"),
        ("bell", "ring it when dinner was ready"), ("blanket", "sleep with it every night"), ("flute", "play soft music"),
        ("paintbrush", "paint pictures of the sky"), ("umbrella", "dance in the rain with it"),
        ("toy horse", "ride it in long dreams"), ("basket", "fill it with flowers"), ("spoon", "stir the soup with it"),
        ("cup", "drink warm milk from it"), ("coin", "keep it for luck"), ("map", "plan great journeys"),
        ("shell", "listen to the sea in it"), ("feather", "tickle friends with it"), ("button", "shine it every evening"),
        ("ring", "turn it round and make a wish"), ("puppet", "put on little shows")]
FOODS = [("cake", "cakes"), ("pie", "pies"), ("apple", "apples"), ("cookie", "cookies"), ("pear", "pears"),
         ("bun", "buns"), ("carrot", "carrots"), ("sandwich", "sandwiches"), ("pancake", "pancakes"), ("plum", "plums"),
         ("peach", "peaches"), ("muffin", "muffins"), ("tart", "tarts"), ("nut", "nuts"), ("berry", "berries")]
# place, preposition, things to see, hiding spots
PLACES = [
    ("the harbour", "at", ["white sails", "screaming gulls", "coils of rope"], ["behind a barrel", "under a net", "between two boats"]),
    ("the castle", "in", ["stone towers", "long halls", "coloured flags"], ["behind a suit of armour", "under the throne", "at the bottom of the stairs"]),
    ("the bakery", "at", ["warm loaves", "sweet smells", "trays of buns"], ["behind the oven", "under the counter", "beside a flour bag"]),
    ("the train station", "at", ["long rails", "waiting people", "a big clock"], ["under a bench", "behind a trunk", "beside the ticket window"]),
    ("the playground", "in", ["a red slide", "a tall swing", "a wooden castle"], ["under the slide", "behind the swing", "inside the wooden castle"]),
    ("the swamp", "in", ["croaking frogs", "green water", "crooked trees"], ["under a lily pad", "behind a crooked tree", "on a small island"]),
    ("the mountain", "on", ["grey rocks", "patches of snow", "cold wind"], ["under a ledge", "behind a boulder", "in a small cave"]),
    ("the toy shop", "in", ["rows of dolls", "painted blocks", "a train in the window"], ["behind a stack of boxes", "under the shelf", "inside a drum"]),
    ("the zoo", "at", ["sleepy lions", "tall giraffes", "chattering monkeys"], ["behind the ticket booth", "under a bench", "near the duck pond"]),
    ("the museum", "in", ["old bones", "golden frames", "quiet rooms"], ["behind a statue", "under the bench", "next to a tall vase"]),
    ("the lighthouse", "at", ["a spiral stair", "a bright lamp", "waves far below"], ["behind the lamp", "under the bottom step", "on the window ledge"]),
    ("the greenhouse", "in", ["warm air", "strange plants", "glass walls"], ["behind a fern", "under a table", "inside an empty pot"]),
    ("the windmill", "at", ["turning sails", "a wooden door", "piles of grain"], ["behind the grain", "under the ladder", "beside the millstone"]),
    ("the island", "on", ["palm trees", "pink shells", "clear water"], ["under a palm leaf", "behind a dune", "inside a hollow trunk"]),
    ("the kitchen", "in", ["shining pots", "a warm stove", "a bowl of fruit"], ["under the table", "behind the stove", "inside the big pot"]),
    ("the old bridge", "by", ["mossy stones", "quick water", "darting swallows"], ["under the arch", "between two stones", "behind the railing"]),
    ("the vineyard", "in", ["heavy grapes", "long rows", "warm earth"], ["under the leaves", "behind a basket", "beside a wooden post"]),
    ("the theatre", "in", ["red curtains", "golden lights", "empty seats"], ["behind the curtain", "under a seat", "inside a costume trunk"]),
    ("the park", "in", ["tall trees", "a round pond", "an old bench"], ["under the bench", "behind the slide", "in the sandbox"]),
    ("the forest", "in", ["green moss", "singing birds", "a winding path"], ["under a fern", "in a hollow log", "behind a big oak"]),
    ("the beach", "at", ["white sand", "small waves", "shiny shells"], ["behind a rock", "under an old boat", "in the wet sand"]),
    ("the farm", "at", ["fat hens", "a red barn", "rows of corn"], ["in the hay", "behind the barn", "under the cart"]),
    ("the market", "at", ["bright stalls", "baskets of fruit", "busy people"], ["under a table", "behind the fruit stall", "between two crates"]),
    ("the river", "by", ["smooth stones", "silver fish", "a wooden bridge"], ["under the bridge", "among the reeds", "between two stones"]),
    ("the hill", "on", ["long grass", "wild flowers", "a wide view"], ["behind a bush", "in the long grass", "under a flat stone"]),
    ("the garden", "in", ["red roses", "a stone wall", "buzzing bees"], ["under the roses", "behind the shed", "in the flower pot"]),
    ("the lake", "by", ["still water", "white ducks", "a little boat"], ["in the little boat", "among the water plants", "under the pier"]),
    ("the old mill", "at", ["a turning wheel", "sacks of flour", "dusty windows"], ["behind a sack", "under the stairs", "near the wheel"]),
    ("the meadow", "in", ["yellow flowers", "butterflies", "soft clover"], ["in the clover", "behind a molehill", "under a big leaf"]),
    ("the school yard", "in", ["a painted wall", "a tall swing", "laughing children"], ["under the swing", "behind the door", "by the wall"]),
    ("the village square", "in", ["a stone fountain", "a clock tower", "many pigeons"], ["behind the fountain", "under a cart", "on the steps"]),
    ("the library", "in", ["high shelves", "soft chairs", "quiet readers"], ["between two books", "under a chair", "behind the curtain"]),
    ("the orchard", "in", ["apple trees", "a wooden ladder", "sweet smells"], ["under the ladder", "in a basket", "behind a tree trunk"]),
    ("the cave", "in", ["dark walls", "dripping water", "cold air"], ["on a ledge", "behind a rock", "in a crack in the wall"]),
    ("the attic", "in", ["old boxes", "a dusty mirror", "a broken clock"], ["in a box", "behind the mirror", "under an old coat"]),
]
FEARS = [("the cellar", "dark"), ("the cold lake", "water"), ("lightning", "storm"), ("climbing", "high"), ("growling dogs", "dog"), ("singing in front of others", "speak"), ("the dark", "dark"), ("deep water", "water"), ("loud thunder", "storm"), ("high places", "high"), ("big dogs", "dog"),
         ("speaking in front of people", "speak"), ("spiders", "spider")]
WEATHER = ["misty", "stormy", "mild", "grey", "golden", "chilly", "breezy", "dull", "clear", "fresh", "sunny", "windy", "rainy", "cloudy", "cold", "warm", "foggy", "snowy", "bright", "hot", "frosty"]
MORALS = {
    "share": ["sharing makes every game better", "things are more fun with a friend", "a shared [toy|treasure] is twice as nice"],
    "truth": ["telling the truth is hard but always best", "a mistake is not so bad when you tell the truth",
              "the truth makes the heart light"],
    "brave": ["being brave means doing it even when you are afraid", "fear gets smaller when you face it",
              "a friend can make you brave"],
    "patience": ["good things take time", "slow and steady work brings the best reward", "waiting can be worth it"],
    "help": ["kindness always comes back", "no one is too small to help", "helping others is the best thing to do"],
    "listen": ["it is wise to listen", "warnings are a kind of love", "rules are there to keep us safe"],
    "care": ["it is good to look after the things you love", "lost things are found by those who keep looking",
             "you should never give up too soon"],
    "enough": ["what you have may be better than what you wish for", "wishes need careful words",
               "home is better than any gold"],
    "pride": ["it is better to be kind than to be first", "boasting does not win races", "every friend is good at something"],
}
