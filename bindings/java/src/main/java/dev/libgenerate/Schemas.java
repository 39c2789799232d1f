// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;

/** JSON Schemas of classes, for {@link Grammar#jsonSchema(String)}. */
public final class Schemas {
  private final Map<Class<?>, String> names = new LinkedHashMap<>();
  private final List<String> definitions = new ArrayList<>();

  private Schemas() {}

  /**
   * Of the JSON objects that hold the components of a record, or the properties of a bean (what has a setter), all of them
   * and no others; an {@link Optional} need not be there, or may be null. Numbers have the bounds of their type, enums are
   * the names of their constants, collections and arrays are lists, maps from strings are objects, and an Object is any
   * value. Classes may be recursive. It is a schema of draft 4, whose integers are written without fraction and exponent.
   * A record's components come in their order.
   *
   * @throws IllegalArgumentException naming the component, for what JSON has no form for.
   */
  public static String of(Type type) {
    Schemas all = new Schemas();
    String schema = all.schema(type);
    return "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"allOf\":[" + schema + "],\"definitions\":{"
        + String.join(",", all.definitions) + "}}";
  }

  private static String whole(long least, long most) {
    return "{\"type\":\"integer\",\"minimum\":" + least + ",\"maximum\":" + most + "}";
  }

  private String list(Type item) {
    return "{\"type\":\"array\",\"items\":" + schema(item) + "}";
  }

  private String schema(Type type) {
    if (type instanceof GenericArrayType) return list(((GenericArrayType) type).getGenericComponentType());
    if (type instanceof WildcardType) return schema(((WildcardType) type).getUpperBounds()[0]);
    if (type instanceof ParameterizedType) {
      ParameterizedType given = (ParameterizedType) type;
      Class<?> raw = (Class<?>) given.getRawType();
      Type[] arguments = given.getActualTypeArguments();
      if (Collection.class.isAssignableFrom(raw) || raw == Iterable.class) return list(arguments[0]);
      if (Map.class.isAssignableFrom(raw) && arguments[0] == String.class) {
        return "{\"type\":\"object\",\"additionalProperties\":" + schema(arguments[1]) + "}";
      }
      if (raw == Optional.class) return "{\"anyOf\":[" + schema(arguments[0]) + ",{\"type\":\"null\"}]}";
      throw new IllegalArgumentException(type + " has no form in JSON");
    }
    if (!(type instanceof Class)) throw new IllegalArgumentException(type + " is no class");
    Class<?> one = (Class<?>) type;
    if (one == Object.class) return "{}";
    if (one == boolean.class || one == Boolean.class) return "{\"type\":\"boolean\"}";
    if (one == byte.class || one == Byte.class) return whole(Byte.MIN_VALUE, Byte.MAX_VALUE);
    if (one == short.class || one == Short.class) return whole(Short.MIN_VALUE, Short.MAX_VALUE);
    if (one == int.class || one == Integer.class) return whole(Integer.MIN_VALUE, Integer.MAX_VALUE);
    if (one == long.class || one == Long.class) return whole(Long.MIN_VALUE, Long.MAX_VALUE);
    if (one == float.class || one == Float.class) return "{\"type\":\"number\",\"minimum\":-3e38,\"maximum\":3e38}";
    if (one == double.class || one == Double.class) return "{\"type\":\"number\",\"minimum\":-1e308,\"maximum\":1e308}";
    if (one == char.class || one == Character.class) return "{\"type\":\"string\",\"minLength\":1,\"maxLength\":1}";
    if (CharSequence.class.isAssignableFrom(one)) return "{\"type\":\"string\"}";
    if (one == java.math.BigInteger.class) return "{\"type\":\"integer\"}";
    if (Number.class.isAssignableFrom(one)) return "{\"type\":\"number\"}";
    if (one == java.util.UUID.class) return "{\"type\":\"string\",\"format\":\"uuid\"}";
    if (one == java.time.LocalDate.class) return "{\"type\":\"string\",\"format\":\"date\"}";
    if (one == java.time.Instant.class || one == java.time.OffsetDateTime.class) {
      return "{\"type\":\"string\",\"format\":\"date-time\"}";
    }
    if (one == OptionalInt.class) return "{\"anyOf\":[" + schema(int.class) + ",{\"type\":\"null\"}]}";
    if (one == OptionalLong.class) return "{\"anyOf\":[" + schema(long.class) + ",{\"type\":\"null\"}]}";
    if (one == OptionalDouble.class) return "{\"anyOf\":[" + schema(double.class) + ",{\"type\":\"null\"}]}";
    if (one.isArray()) return list(one.getComponentType());
    if (one.isEnum()) {
      List<String> constants = new ArrayList<>();
      for (Object constant : one.getEnumConstants()) constants.add(quoted(((Enum<?>) constant).name()));
      return "{\"enum\":[" + String.join(",", constants) + "]}";
    }
    if (one.isInterface() || one.isPrimitive() || one.isAnnotation()) {
      throw new IllegalArgumentException(one + " has no form in JSON");
    }
    String name = names.get(one);
    if (name == null) {
      name = "t" + names.size();
      names.put(one, name);
      definitions.add(quoted(name) + ":" + object(one));
    }
    return "{\"$ref\":\"#/definitions/" + name + "\"}";
  }

  private String object(Class<?> type) {
    Map<String, Type> members = new LinkedHashMap<>();
    if (type.isRecord()) {
      for (RecordComponent component : type.getRecordComponents()) {
        members.put(component.getName(), component.getGenericType());
      }
    } else {
      Map<String, Type> setters = new TreeMap<>(); // methods come in no order
      for (Method method : type.getMethods()) {
        String name = method.getName();
        boolean sets = name.startsWith("set") && name.length() > 3 && method.getParameterCount() == 1;
        if (sets && !Modifier.isStatic(method.getModifiers())) {
          setters.put(property(name.substring(3)), method.getGenericParameterTypes()[0]);
        }
      }
      members.putAll(setters);
      if (members.isEmpty()) throw new IllegalArgumentException(type + " is no record, and no bean with setters");
    }
    List<String> properties = new ArrayList<>();
    List<String> required = new ArrayList<>();
    members.forEach((name, member) -> {
      try {
        properties.add(quoted(name) + ":" + schema(member));
      } catch (IllegalArgumentException wrong) {
        throw new IllegalArgumentException(type.getSimpleName() + "." + name + ": " + wrong.getMessage(), wrong);
      }
      if (!member.getTypeName().startsWith("java.util.Optional")) required.add(quoted(name));
    });
    String all = required.isEmpty() ? "" : ",\"required\":[" + String.join(",", required) + "]";
    return "{\"type\":\"object\",\"properties\":{" + String.join(",", properties) + "}" + all
        + ",\"additionalProperties\":false}";
  }

  /** "URL" stays, "Name" becomes "name". */
  private static String property(String name) {
    boolean shout = name.length() > 1 && Character.isUpperCase(name.charAt(0)) && Character.isUpperCase(name.charAt(1));
    return shout ? name : Character.toLowerCase(name.charAt(0)) + name.substring(1);
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }
}
