// SPDX-License-Identifier: Apache-2.0
// Proves that the state of a session is read layer by layer, and that the session goes back to snapshots of it.
import dev.libgenerate.Generator;
import dev.libgenerate.Session;
import dev.libgenerate.SsmState;
import dev.libgenerate.Status;
import dev.libgenerate.TokenStream;

final class StateTest {
  private StateTest() {}

  public static void main(String[] args) {
    Check.test("a session's state: layers, snapshots, forks", StateTest::states);
    Check.test("a session's state: what fails", StateTest::errors);
    Check.finish();
  }

  /** What test_model_memory keeps after the first n of the tokens: the last six, newest first. */
  private static float[] remembered(int[] tokens, int n) {
    float[] kept = new float[6];
    for (int i = 0; i < kept.length && i < n; ++i) kept[i] = tokens[n - 1 - i];
    return kept;
  }

  /** Compares a session's state with the tokens that the session holds, of which the last is not evaluated. */
  private static void holds(Session session, SsmState state, int length) {
    int[] tokens = session.tokens();
    Check.equal(length, tokens.length, "length");
    Check.equal(length - 1, state.position(), "position");
    Check.equal("1 2 3", shape(state, 0), "shape");
    Check.equal(remembered(tokens, length - 1), state.layer(0).data(), "the last tokens");
    Check.equal("1 1 1", shape(state, 1), "shape");
    Check.equal(new float[] {length - 1}, state.layer(1).data(), "their number");
  }

  private static String shape(SsmState state, int layer) {
    return state.layer(layer).batch() + " " + state.layer(layer).seq() + " " + state.layer(layer).dim();
  }

  private static void states() throws Exception {
    try (Generator generator = Check.generator("test_model_memory"); Session session = generator.newSession()) {
      SsmState state = session.state();
      Check.equal(2, state.layers(), "layers");
      Check.equal("custom", state.layerKind(1), "kind");
      Check.equal(null, state.layerKind(2), "no such kind");
      Check.equal(1, state.layerIndex(1), "index");
      Check.equal(-1, state.layerIndex(2), "no such index");
      Check.equal(0, state.position(), "position of an empty session");
      Check.equal(new float[6], state.layer(0).data(), "zeros");

      session.appendTokens(10, 20, 30, 40, 50, 60, 70, 80, 90);
      holds(session, state, 9);
      long first = state.snapshot();
      Check.equal(1L, first, "its number");
      int[] once = session.generate("", Check.greedy(4)).tokens();
      Check.equal(5 + 'a' + (40 + 50 + 60 + 70 + 80 + 90) % 26, once[0], "the sum as a letter");
      holds(session, state, 13);
      long second = state.snapshot();
      int[] more = session.generate("", Check.greedy(4)).tokens();
      holds(session, state, 17);

      try (Session fork = session.fork()) {
        SsmState its = fork.state();
        holds(fork, its, 17);
        Check.fails(Status.OUT_OF_RANGE, () -> its.restore(first));
        state.restore(second);
        holds(session, state, 13);
        holds(fork, its, 17);
      }
      Check.equal(more, session.generate("", Check.greedy(4)).tokens(), "again");
      state.restore(first);
      holds(session, state, 9);
      Check.fails(Status.STATE, () -> state.restore(second));
      holds(session, state, 9);
      Check.equal(once, session.generate("", Check.greedy(4)).tokens(), "again");
      state.restore(second);
      holds(session, state, 13);
    }
  }

  private static void errors() throws Exception {
    try (Generator generator = Check.generator("test_model_memory")) {
      Session session = generator.newSession();
      SsmState state = session.state();
      session.appendTokens(1, 2);
      Check.fails(Status.OUT_OF_RANGE, () -> state.layer(2));
      Check.fails(Status.OUT_OF_RANGE, () -> state.restore(1));
      Check.fails(Status.UNSUPPORTED, () -> state.setLayer(0, new float[6], 1, 2, 3));
      Check.fails(Status.UNSUPPORTED, state::reset);
      holds(session, state, 2);
      try (TokenStream stream = session.stream("", Check.greedy(3))) {
        Check.that(stream.hasNext(), "a token");
        Check.fails(Status.BUSY, state::snapshot);
      }
      session.close();
      Check.fails(Status.STATE, state::snapshot);
      Check.fails(Status.STATE, state::position);
    }
    try (Generator generator = Check.generator("test_model_hidden"); Session session = generator.newSession()) {
      SsmState state = session.state();
      Check.fails(Status.UNSUPPORTED, state::snapshot);
      String message = Check.fails(Status.IO, () -> state.layer(0)).getMessage();
      Check.that(message.contains("the test model's state is hidden"), message);
    }
  }
}
