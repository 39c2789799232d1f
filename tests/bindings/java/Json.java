// SPDX-License-Identifier: Apache-2.0
// Reads JSON into maps, lists, strings, doubles, booleans and null: enough for scenarios.json.
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class Json {
  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value();
    json.space();
    if (json.at != text.length()) throw new IllegalArgumentException("more at " + json.at);
    return value;
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> map(Object value) {
    return (Map<String, Object>) value;
  }

  @SuppressWarnings("unchecked")
  static List<Object> list(Object value) {
    return (List<Object>) value;
  }

  static int[] ints(Object value) {
    return list(value).stream().mapToInt(x -> ((Double) x).intValue()).toArray();
  }

  static int number(Object value) {
    return ((Double) value).intValue();
  }

  private void space() {
    while (at < text.length() && Character.isWhitespace(text.charAt(at))) ++at;
  }

  private boolean next(char c) {
    space();
    if (text.charAt(at) != c) return false;
    ++at;
    return true;
  }

  private Object value() {
    space();
    switch (text.charAt(at)) {
      case '{': {
        ++at;
        Map<String, Object> map = new LinkedHashMap<>();
        while (!next('}')) {
          next(',');
          space();
          String key = string();
          if (!next(':')) throw new IllegalArgumentException("no colon at " + at);
          map.put(key, value());
        }
        return map;
      }
      case '[': {
        ++at;
        List<Object> list = new ArrayList<>();
        while (!next(']')) {
          next(',');
          list.add(value());
        }
        return list;
      }
      case '"':
        return string();
      default: {
        int begin = at;
        while (at < text.length() && ",]} \n\r\t".indexOf(text.charAt(at)) < 0) ++at;
        String word = text.substring(begin, at);
        switch (word) {
          case "true":
            return true;
          case "false":
            return false;
          case "null":
            return null;
          default:
            return Double.valueOf(word);
        }
      }
    }
  }

  private String string() {
    StringBuilder out = new StringBuilder();
    for (++at; text.charAt(at) != '"'; ++at) {
      char c = text.charAt(at);
      if (c != '\\') {
        out.append(c);
        continue;
      }
      c = text.charAt(++at);
      if (c == 'u') {
        out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
        at += 4;
      } else {
        int escape = "nrtbf".indexOf(c);
        out.append(escape >= 0 ? "\n\r\t\b\f".charAt(escape) : c);
      }
    }
    ++at;
    return out.toString();
  }
}
