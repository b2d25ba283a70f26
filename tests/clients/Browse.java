import java.sql.*;
import java.util.*;

/** What pgjdbc is asked to do by the tools that build on it; prints one line for each thing that worked. */
public class Browse {
    static final String BY_STATE = "SELECT state, COUNT(*), SUM(amount), AVG(qty) FROM orders GROUP BY state";

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "alice");
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        properties.setProperty("ssl", "true");
        properties.setProperty("sslmode", "verify-full");
        properties.setProperty("sslrootcert", arguments[1]);
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            metadata(connection.getMetaData());
            prepared(connection);
            fetched(connection);
            recovers(connection);
            timesOut(connection);
        }
    }

    static void metadata(DatabaseMetaData data) throws SQLException {
        print("tables", column(data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME"));
        print("columns", column(data.getColumns(null, "public", "orders", "%"), "COLUMN_NAME"));
        print("remarks", column(data.getColumns(null, "public", "orders", "amount"), "REMARKS"));
        print("keys", column(data.getPrimaryKeys(null, "public", "users"), "COLUMN_NAME"));
        print("imported", column(data.getImportedKeys(null, "public", "users"), "PKTABLE_NAME"));
        print("exported", column(data.getExportedKeys(null, "public", "countries"), "FKTABLE_NAME"));
        print("cross", column(data.getCrossReference(null, "public", "countries", null, "public", "users"), "FKCOLUMN_NAME"));
        print("indexes", column(data.getIndexInfo(null, "public", "users", false, false), "INDEX_NAME"));
        print("schemas", column(data.getSchemas(), "TABLE_SCHEM"));
        print("catalogs", column(data.getCatalogs(), "TABLE_CAT"));
        print("privileges", column(data.getTablePrivileges(null, "public", "orders"), "TABLE_NAME"));
        print("column privileges", column(data.getColumnPrivileges(null, "public", "orders", "state"), "COLUMN_NAME"));
        print("best row", column(data.getBestRowIdentifier(null, "public", "users", 0, true), "COLUMN_NAME"));
        print("versions", column(data.getVersionColumns(null, "public", "users"), "COLUMN_NAME"));
        print("table types", column(data.getTableTypes(), "TABLE_TYPE"));
        print("udts", column(data.getUDTs(null, "public", "%", null), "TYPE_NAME"));
        print("many types", List.of(column(data.getTypeInfo(), "TYPE_NAME").size() > 100));
        print("functions", List.of(column(data.getFunctions(null, "pg_catalog", "lower"), "FUNCTION_NAME").size()));
        print("parameters", List.of(column(data.getFunctionColumns(null, "pg_catalog", "lower", "%"), "FUNCTION_NAME").size() > 0));
        print("procedures", column(data.getProcedures(null, "public", "%"), "PROCEDURE_NAME"));
        print("procedure columns", column(data.getProcedureColumns(null, "public", "%", "%"), "PROCEDURE_NAME"));
        print("client info", List.of(column(data.getClientInfoProperties(), "NAME").size() > 0));
        print("names", List.of(data.getMaxColumnNameLength(), data.getMaxColumnsInIndex(), data.getDatabaseProductVersion()));
        print("keywords", List.of(data.getSQLKeywords().contains("analyze")));
    }

    /** Prepared on the server, and in binary, from the fifth execution on. */
    static void prepared(Connection connection) throws SQLException {
        String text = "SELECT state, COUNT(*), SUM(amount), AVG(qty) FROM orders WHERE user_id > ? AND created_at < ? AND product = ? GROUP BY state";
        Set<List<Object>> answers = new HashSet<>();
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            statement.unwrap(org.postgresql.PGStatement.class).setPrepareThreshold(3);
            for (int i = 0; i < 9; i++) {
                statement.setInt(1, 5);
                statement.setTimestamp(2, Timestamp.valueOf("2024-09-01 00:00:00"));
                statement.setString(3, "pen");
                answers.add(rows(statement.executeQuery()));
            }
            print("result columns", List.of(statement.getMetaData().getColumnTypeName(2), statement.getMetaData().getColumnTypeName(3)));
            print("base column", List.of(statement.getMetaData().isNullable(1)));
            print("parameter types", List.of(statement.getParameterMetaData().getParameterTypeName(3)));
        }
        print("answers", List.of(answers.size()));
        try (PreparedStatement statement = connection.prepareStatement("SELECT COUNT(*) FROM orders WHERE state = ANY(?)")) {
            statement.setArray(1, connection.createArrayOf("text", new String[] {"new", "paid"}));
            print("list", List.of(rows(statement.executeQuery()).size()));
        }
    }

    static void fetched(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        connection.setReadOnly(true);
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(2);
            print("fetched", List.of(rows(statement.executeQuery(BY_STATE)).size() / 4));
            statement.setMaxRows(2);
            print("at most", List.of(rows(statement.executeQuery(BY_STATE)).size() / 4));
        }
        Savepoint savepoint = connection.setSavepoint();
        connection.rollback(savepoint);
        connection.commit();
        connection.setReadOnly(false);
        connection.setAutoCommit(true);
    }

    static void recovers(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            try {
                statement.executeQuery("SELECT * FROM orders");
            } catch (SQLException error) {
                print("refused", List.of(error.getSQLState()));
            }
            print("after", rows(statement.executeQuery("SELECT 1")));
        }
    }

    static void timesOut(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            try {
                statement.executeQuery("SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c");
            } catch (SQLException error) {
                print("timeout", List.of(error.getSQLState()));
            }
            statement.setQueryTimeout(0);
            print("after timeout", rows(statement.executeQuery("SELECT 1")));
        }
        print("valid", List.of(connection.isValid(2)));
    }

    static List<Object> column(ResultSet found, String name) throws SQLException {
        List<Object> values = new ArrayList<>();
        while (found.next()) values.add(found.getString(name));
        return values;
    }

    static List<Object> rows(ResultSet found) throws SQLException {
        List<Object> values = new ArrayList<>();
        while (found.next())
            for (int i = 1; i <= found.getMetaData().getColumnCount(); i++) values.add(found.getObject(i));
        return values;
    }

    static void print(String what, List<?> values) {
        System.out.println(what + ": " + values);
    }
}
