package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Reads commands from standard input, one JSON object a line, and answers each on standard output when it is done, in
 * whatever order that happens. A command names the thread that is to execute it: Redisson's locks belong to threads.
 */
public final class Main {
    public static void main(String[] args) throws IOException {
        Answers answers = new Answers(System.out);
        System.setOut(System.err); // nothing else gets between the answers
        Clients clients = new Clients();
        Workers workers = new Workers();
        Doors doors = new Doors(clients);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Command command = new Command(line);
            workers.execute(command.text("thread"), () -> answers.answer(command, doors));
        }
        // The end of the input is the end of the other side: what still waits is not waited for.
        Runtime.getRuntime().halt(0);
    }
}
