// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Finds and loads libgenerate_java.so, and with it what lies beside it. In this order: beside what the environment variable
 * GENERATE_LIBRARY names (a folder, or a file in it, as libgenerate.so.0), the copy inside the jar, java.library.path.
 */
final class NativeLibrary {
  private static final String WRAPPER = "libgenerate_java.so";
  private static final String[] OTHERS = {"libgenerate.so.0", "libpcre2-8.so.0"};

  private NativeLibrary() {}

  /** @param check throws if what was loaded does not fit these classes. */
  static void load(Runnable check) {
    List<String> tried = new ArrayList<>();
    if (!fromEnvironment(tried) && !fromJar(tried) && !fromPath(tried)) {
      throw new UnsatisfiedLinkError("libgenerate was not found: " + String.join("; ", tried));
    }
    try {
      check.run();
    } catch (GenerateException e) {
      throw new UnsatisfiedLinkError(e.getMessage());
    }
  }

  private static boolean fromEnvironment(List<String> tried) {
    String value = System.getenv("GENERATE_LIBRARY");
    if (value == null || value.isEmpty()) {
      tried.add("GENERATE_LIBRARY is not set");
      return false;
    }
    Path given = Path.of(value).toAbsolutePath();
    Path file = Files.isDirectory(given) ? given.resolve(WRAPPER) : given.resolveSibling(WRAPPER);
    if (!Files.exists(file)) {
      tried.add("GENERATE_LIBRARY: there is no " + file);
      return false;
    }
    if (loaded("GENERATE_LIBRARY", file, tried)) return true;
    throw new UnsatisfiedLinkError("libgenerate cannot be loaded: " + String.join("; ", tried));
  }

  /**
   * The files are copied to a folder that only this user can read, and removed as soon as they are loaded: nothing is left
   * behind, whatever becomes of the process.
   */
  private static boolean fromJar(List<String> tried) {
    String folder = "native/" + platform();
    try (InputStream found = NativeLibrary.class.getResourceAsStream(folder + "/" + WRAPPER)) {
      if (found == null) {
        tried.add("the jar has no " + folder);
        return false;
      }
    } catch (IOException e) {
      tried.add(folder + " in the jar: " + e);
      return false;
    }
    List<Path> files = new ArrayList<>();
    Path directory = null;
    try {
      boolean posix = FileSystems.getDefault().supportedFileAttributeViews().contains("posix");
      directory = posix
          ? Files.createTempDirectory("libgenerate",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
          : Files.createTempDirectory("libgenerate");
      extract(folder, WRAPPER, directory, files);
      for (String name : OTHERS) extract(folder, name, directory, files);
      return loaded(folder + " in the jar", files.get(0), tried);
    } catch (IOException e) {
      tried.add(folder + " in the jar, copied to " + directory + ": " + e);
      return false;
    } finally {
      files.forEach(NativeLibrary::remove);
      if (directory != null) remove(directory);
    }
  }

  private static void extract(String folder, String name, Path directory, List<Path> files) throws IOException {
    try (InputStream in = NativeLibrary.class.getResourceAsStream(folder + "/" + name)) {
      if (in == null) return;
      Path file = directory.resolve(name);
      files.add(file);
      Files.copy(in, file);
    }
  }

  private static void remove(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      path.toFile().deleteOnExit();
    }
  }

  private static boolean fromPath(List<String> tried) {
    try {
      System.loadLibrary("generate_java");
      return true;
    } catch (UnsatisfiedLinkError e) {
      tried.add("java.library.path: " + e.getMessage());
      return false;
    }
  }

  private static boolean loaded(String where, Path file, List<String> tried) {
    try {
      System.load(file.toString());
      return true;
    } catch (UnsatisfiedLinkError e) {
      tried.add(where + ": " + e.getMessage());
      return false;
    }
  }

  static String platform() {
    String os = System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(' ', '-');
    String arch = System.getProperty("os.arch");
    return os + "-" + (arch.equals("amd64") ? "x86_64" : arch);
  }
}
