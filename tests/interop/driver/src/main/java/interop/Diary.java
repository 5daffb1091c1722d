package interop;

import java.io.IOException;
import java.io.Writer;
import java.util.ArrayList;
import java.util.List;

/** What one thread notes of its stays; history.Stay has the format. */
final class Diary {
    private final StringBuilder stays = new StringBuilder();
    private final List<Long> waits = new ArrayList<>();
    private long passes;
    private long inTime;

    void stay(String key, long from, long to, int weight, long token) {
        stays.append(from).append(' ').append(to).append(' ').append(weight).append(' ').append(token)
                .append(' ').append(key).append('\n');
    }

    void waited(long nanos) {
        waits.add(nanos);
    }

    void passed(boolean before) {
        passes++;
        inTime += before ? 1 : 0;
    }

    void write(Writer file) throws IOException {
        file.append(stays);
    }

    List<Long> waits() {
        return waits;
    }

    /** Without a pass that ended only when the others had stopped. */
    long inTime() {
        return inTime;
    }

    long passes() {
        return passes;
    }
}
