// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.locks.LockSupport;

/**
 * Many generations whose pieces come as they are made, all driven by the thread that iterates. One that fails ends without
 * an exception, its result tells why. An interrupt stops all of them.
 */
public final class BatchStream implements Iterator<BatchStream.Piece>, Iterable<BatchStream.Piece>, AutoCloseable {
  /**
   * A piece of one of the generations.
   *
   * @param request its index
   * @param token the piece
   */
  public record Piece(int request, Token token) {}

  private static final long PAUSE_NANOS = 20_000;

  private final List<TokenStream> streams = new ArrayList<>();
  private final List<Result> results = new ArrayList<>();
  private final long[] deadlines;
  private int open;
  private int at;
  private Piece next;

  BatchStream(Generator generator, List<Request> requests) {
    deadlines = new long[requests.size()];
    long now = System.nanoTime();
    try {
      for (Request request : requests) {
        int i = streams.size();
        deadlines[i] = request.deadline() == 0 ? Long.MAX_VALUE : now + request.deadline() * 1_000_000;
        results.add(null);
        try (Session session = request.tokens() != null ? generator.newSession() : null) {
          if (session == null) {
            streams.add(generator.ask(g -> open(g, request)));
          } else {
            session.appendTokens(request.tokens());
            streams.add(session.ask(s -> TokenStream.open(s, request.prompt(), request.sampling())));
          }
        }
        ++open;
      }
    } catch (Throwable e) {
      close();
      throw e;
    }
  }

  private static TokenStream open(long generator, Request request) {
    long session = Handle.make(out -> Native.gen_session_new(generator, out));
    try {
      return TokenStream.open(session, request.prompt(), request.sampling());
    } finally {
      Native.gen_session_free(session);
    }
  }

  /** Runs the models until one of them has another piece. */
  @Override
  public boolean hasNext() {
    int idle = 0;
    while (next == null && open > 0) {
      at = (at + 1) % streams.size();
      Piece piece = step(at);
      if (piece != null) {
        next = piece;
      } else if (++idle > 4 * streams.size()) {
        LockSupport.parkNanos(PAUSE_NANOS);  // another thread runs the step
      }
    }
    return next != null;
  }

  private Piece step(int i) {
    if (results.get(i) != null) return null;
    TokenStream stream = streams.get(i);
    if (System.nanoTime() >= deadlines[i]) stream.cancel();
    try {
      Token token = stream.poll();
      if (stream.isEnded()) finish(i, stream.result());
      return token != null ? new Piece(i, token) : null;
    } catch (GenerateException e) {
      if (!stream.isEnded() || e.result().isEmpty()) throw e;
      finish(i, e.result().get());
      return null;
    }
  }

  private void finish(int i, Result result) {
    results.set(i, result);
    streams.get(i).close();
    --open;
  }

  @Override
  public Piece next() {
    if (!hasNext()) throw new NoSuchElementException();
    Piece piece = next;
    next = null;
    return piece;
  }

  /** Stops one of the generations, from any thread. */
  public void cancel(int request) {
    streams.get(request).cancel();
  }

  /** The result of each request, once all have ended; of others null. */
  public List<Result> results() {
    return new ArrayList<>(results);
  }

  /** This. */
  @Override
  public Iterator<Piece> iterator() {
    return this;
  }

  /** Ends all of them. */
  @Override
  public void close() {
    streams.forEach(TokenStream::close);
    open = 0;
  }
}
