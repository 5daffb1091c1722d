package interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;

/**
 * Applies settings by their names in Redisson's documentation. Reflection, since they moved from one class to another
 * between the versions that are tested, and some of the older one are missing.
 */
final class Settings {
    static void apply(JsonObject settings, Object... configs) {
        for (Map.Entry<String, JsonElement> each : settings.entrySet()) {
            set(each.getKey(), each.getValue(), configs);
        }
    }

    private static void set(String name, JsonElement value, Object[] configs) {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Object config : configs) {
            for (Method method : config.getClass().getMethods()) {
                if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                    call(method, config, value);
                    return;
                }
            }
        }
        throw new IllegalArgumentException("this version has no setting " + name);
    }

    private static void call(Method method, Object config, JsonElement value) {
        try {
            method.invoke(config, convert(value, method.getParameterTypes()[0]));
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(method.getName(), e);
        }
    }

    private static Object convert(JsonElement value, Class<?> type) {
        if (type == long.class) {
            return value.getAsLong();
        }
        if (type == int.class) {
            return value.getAsInt();
        }
        if (type == boolean.class) {
            return value.getAsBoolean();
        }
        if (type.isEnum()) {
            return constant(type, value.getAsString());
        }
        if (type.getSimpleName().equals("NameMapper")) {
            return prefixMapper(type, value.getAsString());
        }
        return value.getAsString();
    }

    private static Object constant(Class<?> type, String name) {
        for (Object each : type.getEnumConstants()) {
            if (each.toString().equals(name)) {
                return each;
            }
        }
        throw new IllegalArgumentException(type + " has no " + name);
    }

    /** A name mapper that adds a prefix, whatever package the interface is in. */
    private static Object prefixMapper(Class<?> type, String prefix) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, args) ->
                switch (method.getName()) {
                    case "map" -> prefix + args[0];
                    case "unmap" -> ((String) args[0]).substring(prefix.length());
                    default -> null;
                });
    }

    private Settings() {
    }
}
