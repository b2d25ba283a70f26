import java.nio.file.*;
import java.sql.*;
import java.time.*;
import java.util.*;

/** Runs a file of statements as tools over pgjdbc do, each often enough to be sent in binary; prints what comes of each. */
public class Sequence {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "alice");
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        properties.setProperty("sslmode", "verify-full");
        properties.setProperty("sslrootcert", arguments[1]);
        properties.setProperty("ApplicationName", "Metabase v0.56 [test]");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_UNCOMMITTED);
            connection.setReadOnly(true);
            connection.setHoldability(ResultSet.CLOSE_CURSORS_AT_COMMIT);
            for (String text : Files.readString(Path.of(arguments[2])).split("\n;;.*\n")) say(once(connection, text));
            say("dates " + dates(connection));
            say("page " + page(connection));
            say("cancelled " + cancelled(connection));
        }
    }

    static String once(Connection connection, String text) {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            Set<String> answers = new HashSet<>();
            int rows = -1;
            for (int i = 0; i < 7; i++) {
                if (!statement.execute()) return "";
                List<List<String>> found = read(statement.getResultSet());
                rows = found.size();
                answers.add(found.toString());
            }
            return "rows " + rows + (answers.size() == 1 ? "" : " but they differ");
        } catch (SQLException error) {
            return "error " + error.getSQLState() + " " + error.getMessage().replace("\n", " | ");
        }
    }

    /** A filter on days, as Metabase binds it. */
    static int dates(Connection connection) throws SQLException {
        String text = "SELECT \"public\".\"orders\".\"state\" AS \"state\", COUNT(*) AS \"count\" FROM \"public\".\"orders\" "
            + "WHERE (\"public\".\"orders\".\"created_at\" >= ?) AND (\"public\".\"orders\".\"created_at\" < ?) AND (\"public\".\"orders\".\"d\" < ?) "
            + "AND (\"public\".\"orders\".\"product\" = ?) GROUP BY \"public\".\"orders\".\"state\"";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            statement.setObject(1, OffsetDateTime.parse("2024-01-15T00:00Z"));
            statement.setObject(2, LocalDateTime.parse("2024-09-01T00:00:00"));
            statement.setObject(3, LocalDate.parse("2024-08-01"));
            statement.setString(4, "pen");
            return read(statement.executeQuery()).size();
        }
    }

    /** A grid reads its first page through a cursor, the rest is never asked for. */
    static int page(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
            statement.setFetchSize(10);
            ResultSet found = statement.executeQuery("SELECT DATE_TRUNC('day', created_at), COUNT(*) FROM orders GROUP BY 1");
            int rows = 0;
            while (rows < 25 && found.next()) rows++;
            return rows;
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    static String cancelled(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (Exception error) {
                    say("not cancelled: " + error);
                }
            });
            other.start();
            try {
                statement.executeQuery("SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c");
            } catch (SQLException error) {
                return error.getSQLState();
            } finally {
                other.join();
            }
        }
        return "no";
    }

    static List<List<String>> read(ResultSet found) throws SQLException {
        List<List<String>> rows = new ArrayList<>();
        while (found.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= found.getMetaData().getColumnCount(); i++) row.add(shown(found.getObject(i)));
            rows.add(row);
        }
        return rows;
    }

    /** The driver writes an array in another way when it came in binary. */
    static String shown(Object value) throws SQLException {
        return value instanceof java.sql.Array array ? Arrays.toString((Object[]) array.getArray()) : String.valueOf(value);
    }

    static void say(String line) {
        System.out.println(line);
    }
}
