/* Runs a script of Lua, whose loops are compiled while they run: `luajit SCRIPT`. */
#include <luajit-2.1/lauxlib.h>
#include <luajit-2.1/lualib.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    lua_State *lua = luaL_newstate();
    if (!lua || argc != 2)
        return 2;
    luaL_openlibs(lua);
    if (luaL_dofile(lua, argv[1]))
        return fprintf(stderr, "luajit: %s\n", lua_tostring(lua, -1)), 1;
    lua_close(lua);
    return 0;
}
