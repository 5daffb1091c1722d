package interop;

import com.google.gson.Gson;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;

/** Writes what came of commands. */
final class Answers {
    private static final Gson GSON = new Gson();
    private final PrintStream out;

    Answers(PrintStream out) {
        this.out = out;
    }

    /** Executes a command and writes its result, or the exception that it ended with. */
    void answer(Command command, Doors doors) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", command.number("id"));
        answer.put("began", Clock.nanos());
        try {
            answer.put("value", doors.execute(command));
        } catch (Throwable e) {
            answer.put("error", e.getClass().getName());
            answer.put("message", whole(e));
        }
        answer.put("ended", Clock.nanos());
        write(GSON.toJson(answer));
    }

    /** The message of an exception and of those that caused it. */
    private static String whole(Throwable e) {
        StringBuilder text = new StringBuilder(String.valueOf(e.getMessage()));
        for (Throwable cause = e.getCause(); cause != null; cause = cause.getCause()) {
            text.append("; caused by ").append(cause);
        }
        return text.toString();
    }

    private synchronized void write(String line) {
        out.println(line);
        out.flush();
    }
}
