package interop;

import java.io.IOException;
import java.io.Writer;

/** What one thread notes of its stays; history.Stay has the format. */
final class Diary {
    private final StringBuilder stays = new StringBuilder();
    private long longest;
    private long passes;

    void stay(String key, long from, long to, int weight, long token) {
        stays.append(from).append(' ').append(to).append(' ').append(weight).append(' ').append(token)
                .append(' ').append(key).append('\n');
    }

    void waited(long nanos) {
        longest = Math.max(longest, nanos);
    }

    void passed() {
        passes++;
    }

    void write(Writer file) throws IOException {
        file.append(stays);
    }

    long longest() {
        return longest;
    }

    long passes() {
        return passes;
    }
}
