package interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;

/** A command as the Go side wrote it. */
final class Command {
    private final JsonObject fields;

    Command(String line) {
        fields = JsonParser.parseString(line).getAsJsonObject();
    }

    boolean has(String field) {
        return fields.has(field);
    }

    String text(String field) {
        return fields.get(field).getAsString();
    }

    long number(String field) {
        return fields.get(field).getAsLong();
    }

    long number(String field, long otherwise) {
        return has(field) ? number(field) : otherwise;
    }

    int count(String field) {
        return Math.toIntExact(number(field));
    }

    List<String> texts(String field) {
        List<String> texts = new ArrayList<>();
        if (has(field)) {
            for (JsonElement each : fields.getAsJsonArray(field)) {
                texts.add(each.getAsString());
            }
        }
        return texts;
    }

    JsonObject object(String field) {
        return has(field) ? fields.getAsJsonObject(field) : new JsonObject();
    }
}
