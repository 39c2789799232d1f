// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A generation pulled piece by piece. The model runs inside {@link #hasNext} and {@link #next}, on the thread that calls
 * them; one thread at a time. After a failure or a cancel the iteration throws once, with the partial result, and is at its
 * end. Closing it in the middle ends the generation; its session keeps the tokens so far.
 */
public final class TokenStream extends Handle implements Iterator<Token>, Iterable<Token> {
  private static final int STATE = 0;
  private static final int ID = 1;
  private static final int DONE = 2;
  private static final int REASON = 3;
  private static final int INDEX = 4;
  private static final int LOGPROB = 5;
  private static final int TEXT = 6;
  private static final int TEXT_LENGTH = 7;
  private static final int PIECES = 8;
  private static final int PIECE_COUNT = 9;
  private static final int FIELDS = 10;
  private static final int PENDING = 0;
  private static final int END = 2;

  private final Call.Flagged call;
  private final AtomicBoolean inUse = new AtomicBoolean();
  private final long[] event = new long[FIELDS];
  private final byte[] text = new byte[64];
  private FinishReason finishReason = FinishReason.NONE;
  private Token next;
  private boolean ended;

  private TokenStream(long address, Call.Flagged call) {
    super("stream", address, stream -> {
      Native.gen_stream_close(stream);
      call.close();
    });
    this.call = call;
  }

  static TokenStream open(long session, byte[] prompt, Sampling sampling, Cancel... cancels) {
    return open((settings, out) -> Native.gen_stream_open(session, prompt, prompt.length, settings, out), sampling, cancels);
  }

  /** Opens one with settings, into an array of one. */
  interface Opening {
    void open(long settings, long[] out);
  }

  static TokenStream open(Opening opening, Sampling sampling, Cancel... cancels) {
    Call.Flagged call = new Call.Flagged(cancels);
    try {
      return new TokenStream(Sampling.orDefaults(sampling).use(settings -> {
        Native.gen_sampling_set_cancel(settings, call.address());
        return make(out -> opening.open(settings, out));
      }), call);
    } catch (Throwable e) {
      call.close();
      throw e;
    }
  }

  /** Runs the model until there is another piece, or none. */
  @Override
  public boolean hasNext() {
    if (next == null && !ended) next = pull(true);
    return next != null;
  }

  @Override
  public Token next() {
    if (!hasNext()) throw new NoSuchElementException();
    Token token = next;
    next = null;
    return token;
  }

  /**
   * The next piece if there is one, without waiting for other threads: for one thread that drives many streams. Null while
   * there is none yet, and at the end, see {@link #isEnded}. A round over all streams of a generator costs one step.
   */
  public Token poll() {
    Token token = next;
    next = null;
    return token != null || ended ? token : pull(false);
  }

  /**
   * The most probable tokens at the position of the last piece, best first, with {@link Sampling#logprobs} above 0. It is
   * for before {@link #hasNext} runs the model again.
   */
  public List<Result.Candidate> alternatives() {
    if (!inUse.compareAndSet(false, true)) {
      throw new GenerateException(Status.BUSY, "the stream is in use by another thread");
    }
    try {
      return ask(stream -> {
        long[] ids = new long[1];
        long[] values = new long[1];
        long count = Native.gen_stream_alternatives(stream, ids, values);
        return count == 0 ? List.of() : Result.candidates(ids[0], values[0], count);
      });
    } finally {
      inUse.set(false);
    }
  }

  /** Whether all pieces have been given. */
  public boolean isEnded() {
    return ended && next == null;
  }

  private Token pull(boolean wait) {
    if (!inUse.compareAndSet(false, true)) {
      throw new GenerateException(Status.BUSY, "the stream is in use by another thread");
    }
    try {
      state.enter();
      try {
        return pull(wait, state.address());
      } finally {
        state.exit();
      }
    } finally {
      inUse.set(false);
    }
  }

  private Token pull(boolean wait, long stream) {
    call.enter();
    try {
      if (wait) {
        Native.gen_binding_stream_next(stream, event, text, text.length);
      } else {
        Native.gen_binding_stream_poll(stream, event, text, text.length);
      }
    } catch (GenerateException e) {
      List<Result> partial = partial(stream);
      if (e.status() == Status.BUSY && partial.isEmpty()) throw e;  // nothing has begun
      ended = true;
      finishReason = e.status() == Status.CANCELLED ? FinishReason.CANCELLED : FinishReason.ERROR;
      throw e.with(partial);
    } finally {
      call.leave();
    }
    if (event[STATE] == PENDING) return null;
    if (event[DONE] != 0) finishReason = FinishReason.of(event[REASON]);
    // After the last event of one that was stopped or failed comes the reason, as a failure.
    boolean failure = finishReason == FinishReason.ERROR || finishReason == FinishReason.CANCELLED;
    ended = event[STATE] == END || event[DONE] != 0 && !failure;
    boolean empty = event[TEXT_LENGTH] == 0 && event[PIECE_COUNT] == 0;
    if (event[DONE] != 0 && empty && !ended) return pull(wait, stream);
    if (event[STATE] == END || event[DONE] != 0 && empty) return null;
    return new Token((int) event[ID], piece(), Float.intBitsToFloat((int) event[LOGPROB]), (int) event[INDEX], pieces());
  }

  private String piece() {
    int n = (int) event[TEXT_LENGTH];
    if (n == 0) return "";
    if (n > text.length) return textAt(event[TEXT], n);
    return new String(text, 0, n, StandardCharsets.UTF_8);
  }

  private static String textAt(long address, int n) {
    byte[] bytes = new byte[n];
    Native.gen_binding_copy(address, n, bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private List<Token.Piece> pieces() {
    int count = (int) event[PIECE_COUNT];
    if (count == 0) return List.of();
    Token.Piece[] all = new Token.Piece[count];
    long[] fields = new long[4]; // kind, call, address and bytes of the text
    for (int i = 0; i < count; i++) {
      Native.gen_binding_piece(event[PIECES], i, fields);
      all[i] = new Token.Piece(Token.PieceKind.values()[(int) fields[0]], (int) fields[1],
          textAt(fields[2], (int) fields[3]));
    }
    return List.of(all);
  }

  private static List<Result> partial(long stream) {
    try {
      return List.of(Result.take(make(out -> Native.gen_stream_result(stream, out))));
    } catch (GenerateException e) {
      return List.of();
    }
  }

  /** Why the generation ended; {@link FinishReason#NONE} before its end. */
  public FinishReason finishReason() {
    return finishReason;
  }

  /** The result, once the stream is at its end. */
  public Result result() {
    return ask(s -> Result.take(make(out -> Native.gen_stream_result(s, out))));
  }

  /** Stops the generation, from any thread: the next piece is a {@link GenerateCancelledException}. */
  public void cancel() {
    call.fire();
  }

  /** This. */
  @Override
  public Iterator<Token> iterator() {
    return this;
  }

  /** The pieces as a sequential stream, whose close is this one's. */
  public Stream<Token> stream() {
    return StreamSupport.stream(
        Spliterators.spliteratorUnknownSize(this, Spliterator.ORDERED | Spliterator.NONNULL), false).onClose(this::close);
  }

  /** Ends the generation, and soon a call that another thread is in. */
  @Override
  public void close() {
    call.fire();
    super.close();
  }
}
