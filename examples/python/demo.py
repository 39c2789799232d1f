#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams a story, stops another one after a moment, and runs three at once: demo.py MODEL.gguf"""
import sys
import threading

from libgenerate import Cancel, Chat, ChatSession, Error, Generator, Model, Session

if len(sys.argv) != 2:
    sys.exit("usage: demo.py MODEL.gguf")
with Model(sys.argv[1]) as model, Generator(model) as generator:
    with Session(generator) as session:
        for token in session.stream("Once upon a time", temperature=0, max_new_tokens=40):
            print(token.text, end="", flush=True)
        print()

    with Chat().add("system", "You tell stories.") as chat, ChatSession(generator, chat) as talk:
        for message in ["Tell me of a dog.", "And then?"]:
            for token in talk.stream(message, temperature=0, max_new_tokens=20):
                print(token.text, end="", flush=True)
            print()

    # From another thread; within the loop, leaving it is enough.
    with Session(generator) as session, Cancel() as cancel:
        timer = threading.Timer(0.1, cancel.fire)
        timer.start()
        try:
            session.generate("The dog", cancel, temperature=0.8, max_new_tokens=1000, ignore_eos=1)
        except Error as stopped:
            print(f"stopped: {stopped}; {len(stopped.result.tokens)} tokens by then")
        timer.join()

    for result in generator.batch(["The cat", "A girl", "In the garden"], temperature=0.7, seed=1, max_new_tokens=20):
        print(result.error or result.text.strip().replace("\n", " "))
